#pragma once
// The agent of one node: carries out the coordinator's orders with the shim, the zygote, pipes,
// heartbeats and recovery links of this host, and reports what happens. It decides nothing about
// the job; what it knows of a generation is who runs in it. Before its Seat it gets ready: shim and
// zygote do not depend on which ranks there will be.
//
// Single-threaded but for the log keeper's two threads and that of the log rules. Life: Create,
// orders, End, once.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/keep/kept.h"
#include "agent/launch/launcher.h"
#include "agent/launch/shim_client.h"
#include "agent/logs/console.h"
#include "agent/logs/log_keeper.h"
#include "agent/node/heartbeat_pages.h"
#include "agent/node/node.h"
#include "agent/node/stack_taker.h"
#include "agent/rules/rule_thread.h"
#include "agent/run_job.h"
#include "os/event_loop.h"
#include "os/oom_count.h"

namespace muster::agent {

/// Where the node of a process stood that this one follows.
struct NodePlace {
  Generation generation;                 ///< 0: none began
  std::vector<Generation> spawned{};     ///< by rank of the node
  std::vector<std::uint8_t> runs{};      ///< by rank: 1, its process was there
  std::vector<std::uint64_t> records{};  ///< by rank: of its steps the last that was reported
  std::uint32_t first = 0;               ///< its ranks begin with this one
  std::optional<Generation> stops;       ///< a Stop of it was ordered, and nobody heard it answered
  bool use_zygote = true;                ///< it is not broken, as far as there is one
};

/// What workers get between TERM and KILL when nobody is left to order it, at most.
inline constexpr auto kOrphanGrace = std::chrono::seconds(10);

struct NodeOptions {
  const RunOptions* job = nullptr;  ///< outlives the runner
  std::uint32_t ranks = 0;          ///< of the job, on this node
  std::string run_id;
  std::string shim_id;                   ///< names the control group: one of its own on a host
  std::string folder;                    ///< of the run, on this host; absolute
  std::string store_host = "127.0.0.1";  ///< of a Start that names none
  bool own_folder = false;  ///< of this node alone: it keeps the generation's number there
  FileSystem* files = nullptr;
  std::shared_ptr<Console> console;  ///< where workers' lines go
  const Clock* clock = nullptr;
  std::uint64_t soft_nofile = 0;  ///< the limit that workers are to find; 0: ours
  Kept* kept = nullptr;           ///< outlives the runner; null: nothing is kept
  /// Children of this process that are not the node's, and what marks others (launch/sweep.h).
  std::function<std::vector<int>()> strangers{};
  std::string strangers_mark{};
  /// Of a process that died: its shim and workers are taken over, with what `kept` has of them.
  std::optional<NodePlace> place{};
};

class NodeRunner final : public Node {
 public:
  /// Starts the shim and, for programs that have one, the zygote; or takes them over (place): what
  /// happened meanwhile is reported by the loop. The loop outlives it.
  static Result<std::unique_ptr<NodeRunner>> Create(NodeOptions options, os::EventLoop& loop,
                                                    OnReport on_report);
  void Send(const Order& order) override;
  void Poll() override { Publish(); }

  /// For who follows this process, if it should die.
  NodePlace place() const;
  /// Of a zygote that has loaded what its copies need; 0: there is none.
  int ready_zygote() const { return zygote_ready_ ? zygote_pid_ : 0; }

  /// What OMP_NUM_THREADS is set to; 0: the user has set it.
  std::uint32_t omp_threads() const { return launcher_->omp_threads(); }

 private:
  /// The newest process of a rank.
  struct Worker {
    Generation spawned;
    bool starting = false;            ///< the shim was asked for it, and has not answered
    int pid = 0;                      ///< 0: it does not run
    std::optional<Instant> killed{};  ///< when that was ordered
    bool stepped = false;             ///< in this generation
    os::Pulse pulse;
    Instant moved{};                          ///< when its heartbeat did
    std::optional<os::ProcessWatch> watch{};  ///< from its first look on
    int watched = 0;                          ///< the pid of `watch`
  };
  std::optional<os::ProcessSight> SightOf(Worker& worker, std::chrono::nanoseconds still);
  NodeRunner(NodeOptions options, os::EventLoop& loop, OnReport on_report);
  Status SetUp();

  // node_resume.cc: after the death of the process that had the node before
  Status ResumeNode(const NodePlace& place);
  Status ResumeShim();
  void TakeNote(const ShimMessage& message);
  Status ResumeWorkers(const NodePlace& place);
  Status ResumeLogs(Rank rank, std::vector<Fd> fds);
  void TellMissed(const NodePlace& place);
  Kept& kept() { return options_.kept != nullptr ? *options_.kept : nothing_kept_; }

  // node_runner.cc: orders
  void Do(const order::Seat& order);
  Status TakeSeat(std::uint32_t first);
  void OpenLinks();
  void Do(const order::Renew& order);
  void Do(const order::Start& order);
  void Do(const order::Go& order);
  void Do(const order::Pause& order);
  void Do(const order::Abort& order);
  void Do(const order::Stop& order);
  void Do(const order::Kill& order);
  void Do(const order::Signal& order);
  void Do(const order::TellWords& order);
  void Do(const order::TakeStacks& order);
  void Do(const order::GiveUp& order);
  void Do(const order::End& order);
  void StartWhenClear();
  bool MakesRoom();
  void GiveUpOn(Rank rank);
  Status CheckStart(const order::Start& order);
  Status StartGeneration(const order::Start& order);
  void Tell(Report report) { on_report_(std::move(report)); }

  // node_shim.cc: the shim and the zygote
  Status StartShim();
  void UnwatchShim();
  void ReadShim();
  void Handle(const ShimMessage& message);
  void TakeCgroup(const shim::Hello& hello);
  void HandleStarted(const shim::Started& started);
  void HandleExited(const shim::Exited& exited);
  void CountOomKills();
  void ForgetOomKills();
  std::uint64_t TakeOomKills(bool killed);
  std::string LastWordsOf(Rank rank, Generation spawned);
  void LoseShim(std::string how = {});
  std::string HowShimEnded() const;
  void ForgetWorkers();
  void LeaveShim();
  void Sweep();
  void EnsureZygote();
  bool AwaitsZygote() const;
  void TellLoading();
  void HandleZygote(const shim::Zygote& zygote);
  void BreakZygote(std::string why);
  std::string WhyNoZygote(const shim::Zygote& zygote) const;

  // node_watch.cc: what is seen
  void Publish();
  void PublishLater();
  void Look(report::Progress* progress);
  void LookAtSilent(report::Progress* progress);
  void TellWords(bool now);
  void TellWordsLater();
  void Housekeep();
  void TellLosses();
  Status StartRules();
  std::vector<Generation> SpawnedOfJob() const;
  void BeginRules();
  std::function<void(const LogId&, std::string_view)> RuleTap();

  Worker& At(Rank rank) { return workers_[ranks_.IndexOf(rank)]; }

  const NodeOptions options_;
  Kept nothing_kept_;
  bool seat_taken_over_ = false;      ///< pages and links are there
  std::vector<shim::Exited> missed_;  ///< ends that nobody may have heard of
  os::EventLoop& loop_;
  OnReport on_report_;
  RankRange ranks_;
  std::vector<Worker> workers_;  ///< by rank, of this node
  StackTaker stack_taker_;
  std::optional<ShimClient> shim_;  ///< none from its loss, which was told, to Renew
  std::optional<os::WatchId> shim_watch_;
  std::optional<os::OomCount> oom_;  ///< none where the kernel does not count
  std::uint64_t oom_kills_ = 0;      ///< as it counted last
  std::uint64_t oom_told_ = 0;       ///< of these, that were laid to a rank or are of the past
  Instant oom_grew_{};
  std::string cgroup_;
  std::string left_cgroup_;
  std::optional<Launcher> launcher_;
  std::unique_ptr<rules::RuleThread> rules_;  ///< none without rules; behind the loop
  std::unique_ptr<LogKeeper> logs_;           ///< behind the rules
  std::optional<HeartbeatPages> pages_;       ///< from its Seat on, as the links
  std::optional<RankLinks> links_;

  bool use_zygote_ = false;
  bool zygote_alive_ = false;  ///< as far as the shim said
  bool zygote_ready_ = false;  ///< it has loaded what its copies need
  bool zygote_was_ready_ = false;
  Instant zygote_began_{};
  int zygote_pid_ = 0;
  int zygote_deaths_ = 0;

  Generation generation_;
  Instant generation_begin_{};
  bool stopping_ = false;
  std::optional<Generation> stop_unanswered_;  ///< its generation
  std::optional<order::Start> start_;          ///< waits for the zygote, or for room
  std::vector<order::TellWords> words_;
  std::optional<Instant> words_until_;  ///< of this generation: how long crashes may speak
  Instant next_silent_look_{};
  Instant next_look_{};  ///< at processes that do not move
  std::optional<os::TimerId> publish_;
  std::optional<os::TimerId> loading_;
  std::optional<os::TimerId> room_;
  std::optional<os::TimerId> words_retry_;
  std::optional<os::TimerId> housekeep_;
};

}  // namespace muster::agent

#pragma once
// The coordinator of a job: feeds Advance (plan.h) with what its node reports and with signals,
// sends the node the orders that come out, and writes down what happened. It holds no policy of its
// own.
//
// Single-threaded but for the generation writer's thread and those of the node. Life: Create → Run,
// once. A restart is, in this order: Exited → (20 ms) → Stop → Stopped → generation on disk → Start
// → Started of every rank → first step of every rank.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/coordinator/gang.h"
#include "agent/coordinator/hang_watch.h"
#include "agent/coordinator/job_state.h"
#include "agent/coordinator/join_point.h"
#include "agent/coordinator/plan.h"
#include "agent/coordinator/quiet_watch.h"
#include "agent/coordinator/stack_calls.h"
#include "agent/ctl/control_socket.h"
#include "agent/health/kernel_log.h"
#include "agent/health/node_score.h"
#include "agent/keep/kept.h"
#include "agent/logs/console.h"
#include "agent/node/node.h"
#include "agent/node/node_runner.h"
#include "agent/run/accounting.h"
#include "agent/run/committed.h"
#include "agent/run/event_log.h"
#include "agent/run/fault_record.h"
#include "agent/run/generation_writer.h"
#include "agent/run/run_folder.h"
#include "agent/run/step_files.h"
#include "agent/run_job.h"
#include "agent/store/job_store.h"
#include "os/event_loop.h"
#include "os/signals.h"

namespace muster::agent {

/// What a run has from the process that started it.
struct RunHost {
  std::string run_id;
  std::uint64_t soft_nofile = 0;  ///< the limit of descriptors that workers are to find; 0: ours
  Kept* kept = nullptr;           ///< outlives the loop; null: nothing is kept
};

/// Under which the socket of the store process is kept.
inline constexpr const char* kStoreName = "store";

/// Where the ranks of one host find their TCPStore.
inline constexpr const char* kThisHost = "127.0.0.1";

/// What a run stands on. A simulation (agent/simulation) has its own; what it leaves empty is the
/// machine's.
struct RunGround {
  std::shared_ptr<os::EventLoop> loop;
  const Clock* clock = &SystemClock();  ///< outlives the run
  std::shared_ptr<Console> console;
  std::function<std::unique_ptr<GenerationWriter>(GenerationWriter::OnWritten)> make_writer;
  AgentHub::MakeRoutes make_routes;
  std::function<std::unique_ptr<Node>(OnReport, const std::optional<NodePlace>&)> make_node;
};

class RunLoop {
 public:
  /// `options` outlives the loop; `signals` are those that end a run. Starts the node: its shim
  /// and, for programs that have one, the zygote.
  /// With what `kept` has of a coordinator before it goes on where that one stood.
  static Result<std::unique_ptr<RunLoop>> Create(const RunOptions& options, RunFolder folder,
                                                 RunHost host, os::SignalFd signals,
                                                 RunGround ground = {});
  RunOutcome Run();
  /// What Run does before its loop runs, and behind that: for who turns the loop himself.
  void Begin();
  RunOutcome End();
  bool over() const { return node_end_.has_value(); }
  const JobState& state() const { return state_; }

 private:
  /// Whose logs tell of a fault.
  struct FaultPlace {
    Rank rank;
    Generation spawned;
  };
  /// A record that waits for its worker's output and for the end of its generation.
  struct PendingFault {
    FaultRecord record;
    bool has_words = false;
    template <typename A>
    friend void Fields(A& a, PendingFault& m) {
      a("record", m.record), a("has_words", m.has_words);
    }
  };
  /// What is known of where ranks stood when one of them was found to hang.
  struct StackNote {
    bool due = true;
    std::string file{};
    std::vector<StackGroup> groups{};
  };
  RunLoop(const RunOptions& options, RunFolder folder, RunHost host, os::SignalFd signals,
          RunGround ground);
  Status SetUp();
  Status WatchSupervisor();
  Result<std::unique_ptr<Node>> MakeOwnNode(RankRange ranks, OnReport on_report);
  void TellStart();

  // run_resume.cc: in the place of one that died
  template <typename A>
  void FieldsOfRun(A& a);
  void Save();
  void SaveSoon();
  bool Restore();
  NodePlace PlaceOfNode(RankRange ranks) const;
  void GoOn();
  void TellGoOn();

  // run_nodes.cc: several hosts
  Status SetUpGang();
  Status OpenJoinPoint(const net::Address& address);
  Status AddOwnNode();
  bool SshEnded(const std::string& what, bool joined);
  JobTicket Ticket() const;

  // run_loop.cc: events in, orders out
  void Feed(Event event);
  void LookBeforeGivingUp(const Event& event);
  void Take(const Event& event);
  std::vector<Event> ExitsOf(const Event& event) const;
  void Apply(const Action& action);
  void StartRanks(const Action& action);
  order::Start StartOf(const Action& action) const;
  void StartWhenWritten();
  void StopRanks(const Action& action);
  void WriteGenerationOnce(Generation generation);
  void FailStart(const Error& error);
  void GenerationWritten(Generation generation, const Status& written);
  void CloseStore();
  void ArmTick();
  void ReadSignals();
  void EndNode();

  // run_reports.cc: what the node says
  void Hear(const Report& report);
  void On(const report::ZygoteReady& report);
  void On(const report::ZygoteBroken& report);
  void On(const report::Loading& report);
  void On(const report::Begun& report);
  void On(const report::Started& report);
  void On(const report::Exited& report);
  void On(const report::Standing& report);
  void On(const report::Progress& report);
  void On(const report::Stopped& report);
  void On(const report::RuleFired& report);
  void On(const report::Words& report);
  void On(const report::StacksTaken& report);
  void On(const report::Stacks& report);
  void On(const report::Losses& report);
  void On(const report::Failed& report);
  void On(const report::Waiting& report);
  void On(const report::Resized& report);
  void On(const report::Gone& report);
  void On(const report::NodeLost& report);
  void On(const report::Lost& report);
  void On(const report::Ended& report);

  // run_hang.cc: ranks that live and do nothing
  void WatchForHangs();
  void EndHang(const Hang& hang);
  void KillRank(Rank rank, Ending reason);
  void GiveUpOn(Rank rank, Generation spawned);

  // run_quiet.cc: ranks without heartbeat that stand still
  void WatchForQuiet();
  void KillStill(Rank rank, const std::string& what);

  // run_stacks.cc: where they stand
  void ListenForVerbs();
  std::vector<Rank> RunningRanks() const;
  void TakeStacks(StackCalls::OnTaken on_taken, StackCalls::OnNamed on_named);
  void StacksBeforeKill(const Hang& hang);
  void KillHanging(const Hang& hang, Generation spawned);
  void NoteStacks(Generation generation, std::optional<Rank> rank,
                  const std::vector<stacks::Process>& processes);
  std::string KeepStacks(const std::vector<stacks::Process>& processes);

  // run_rules.cc: what their lines say
  void TellRules(Phase before);
  void RuleFired(const rules::Firing& firing);

  // run_kernel.cc: what the kernel of this host says
  void OpenKernelLog();
  void FollowKernelLog();
  void NoteTrouble(const health::ToldTrouble& told);
  std::uint32_t RankOfPid(std::int64_t pid) const;

  // run_watch.cc: what is seen and written down
  void ObserveRank(Rank rank, const os::Pulse& pulse);
  void NoteReady();
  void NoteExit(const Event& event, Phase before);
  void NoteAnother(const Event& event);
  void NotePhase(Phase before, const Plan& plan);
  void NoteQuiesced();
  void NoteFault(const std::string& decision);
  std::string WhyNotStarted(const Error& error) const;
  void TellFaultLater();
  void TellRecovery();
  void TellReplay();
  void WriteFaults(bool now);
  void Housekeep();

  // run_end.cc: the end
  void NoteCommitted(nanoseconds limit);
  void LetGoOfSignals();
  std::string FormatResult(const Verdict& verdict) const;
  void ReportRecordLoss();
  void TellResult(const Verdict& verdict);
  void TellLost();
  void TellWhatNext(const Verdict& verdict);
  std::string ShortPath(const std::string& path) const;

  const RunOptions& options_;
  const RunGround ground_;
  const Clock& clock_;
  RunFolder folder_;
  const RunHost host_;
  Kept nothing_kept_;
  Kept& kept_fds_;
  const std::string run_id_;
  std::shared_ptr<Console> console_;
  EventLog events_;
  Accounting accounting_;
  HangWatch hang_watch_;
  QuietWatch quiet_watch_;
  std::vector<int> pids_;          ///< by rank, of its newest process
  std::vector<Ending> kills_;      ///< by rank: what its process is being killed for
  std::vector<RankSight> sights_;  ///< by rank, as its node saw it last
  JobState state_;
  std::deque<Event> pending_;
  bool feeding_ = false;

  std::shared_ptr<os::EventLoop> loop_;
  os::SignalFd signals_;
  std::optional<os::WatchId> supervisor_;
  std::optional<os::TimerId> tick_;
  std::optional<JobStore> store_;
  std::uint16_t store_port_ = 0;  ///< of this generation's; 0: it has none
  std::optional<StepFiles> steps_;
  std::uint64_t missed_steps_ = 0;
  std::vector<std::uint64_t> records_;      ///< by rank: of its steps the last that came
  std::unique_ptr<Node> node_;              ///< behind the loop that it watches with
  std::unique_ptr<ControlSocket> control_;  ///< none where the folder takes no socket
  std::optional<StackCalls> stack_calls_;
  std::map<Generation, StackNote> stacks_;  ///< of hangs, by the generation of their faults
  std::uint32_t stack_files_ = 0;           ///< so many were written
  bool ends_behind_stacks_ = false;
  std::string store_host_ = kThisHost;
  Gang* gang_ = nullptr;             ///< the node, of several nodes
  std::unique_ptr<JoinPoint> join_;  ///< the same
  std::uint32_t omp_threads_ = 0;
  std::optional<report::Ended> node_end_;

  const Instant begin_;
  std::optional<CommittedSteps> committed_;
  std::unique_ptr<GenerationWriter> generations_;
  Generation asked_{};             ///< newest one that was given to be written
  std::optional<Status> written_;  ///< what became of it
  std::optional<Action> start_;    ///< waits for its generation to be on disk
  Instant worker_started_{};       ///< the last one
  Instant ended_{};
  bool reports_steps_ = false;  ///< a rank took the page for its steps
  Generation ready_{};          ///< newest generation whose ranks all stepped
  std::uint64_t durable_ = 0;
  std::vector<PendingFault> faults_;           ///< those that are not written yet
  std::size_t kept_ = 0;                       ///< ranks that outlived the fault
  std::optional<std::string> fault_sentence_;  ///< of the fault that is being recovered from
  std::string earlier_;  ///< those before it, that were not recovered from when it struck
  std::optional<FaultPlace> last_fault_;
  bool told_exec_ = false;
  bool resumed_ = false;                 ///< another coordinator was here before
  std::pair<Phase, Generation> found_;   ///< of the saved state
  std::optional<JoinPlace> join_place_;  ///< of the saved state, as the next
  std::optional<GangPlace> gang_place_;
  Instant save_due_{};  ///< not before, unless something must be done
  std::optional<os::TimerId> save_timer_;
  std::optional<health::KernelLog> kernel_log_;
  health::NodeScore node_score_;          ///< of this host
  std::pair<int, Instant> told_loading_;  ///< of which zygote, and when again
};

}  // namespace muster::agent

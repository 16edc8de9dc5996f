#pragma once
// Carries out what plan.h decides: reads the shim, signals and heartbeats, feeds Advance with
// events, applies its orders, and writes down what happened. It holds no policy of its own.
//
// Single-threaded but for the log keeper's two threads and the generation writer's. Life: Create →
// Run, once. A restart is, in this order: kExited → (20 ms) → kStop → kStopped → generation on disk
// and zygote ready → Launcher::Start → kStarted of every rank → first step of every rank.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/coordinator/hang_watch.h"
#include "agent/coordinator/job_state.h"
#include "agent/coordinator/plan.h"
#include "agent/launch/launcher.h"
#include "agent/launch/shim_client.h"
#include "agent/logs/console.h"
#include "agent/logs/log_keeper.h"
#include "agent/rules/rule_thread.h"
#include "agent/run/accounting.h"
#include "agent/run/committed.h"
#include "agent/run/event_log.h"
#include "agent/run/fault_record.h"
#include "agent/run/generation_writer.h"
#include "agent/run/rank_board.h"
#include "agent/run/run_folder.h"
#include "agent/run_job.h"
#include "os/event_loop.h"
#include "os/signals.h"

namespace muster::agent {

class RunLoop {
 public:
  /// `options` outlives the loop; `signals` are those that end a run. Starts the shim and, for
  /// programs that have one, the zygote.
  static Result<std::unique_ptr<RunLoop>> Create(const RunOptions& options, RunFolder folder,
                                                 const std::string& run_id, os::SignalFd signals);
  RunOutcome Run();

 private:
  RunLoop(const RunOptions& options, RunFolder folder, const std::string& run_id,
          os::SignalFd signals);
  Status SetUp();
  Status StartShim();

  // run_loop.cc: events in, orders out
  void Feed(Event event);
  void Take(const Event& event);
  void Apply(const Action& action);
  void StartRanks(const Action& action);
  GenerationStart StartOf(const Action& action) const;
  void HearRank(Rank rank, const os::RecoveryHost::Message& message);
  void StartWhenWritten();
  void StopRanks(const Action& action);
  void WriteGenerationOnce(Generation generation);
  void FailStart(const Error& error);
  void GenerationWritten(Generation generation, const Status& written);
  void LoseShim(const std::string& reason);
  Status RenewShim();
  void ArmTick();
  void ReadSignals();
  void ReadShim();
  void Handle(const ShimMessage& message);
  void HandleStarted(const shim::Started& started);
  void HandleExited(const shim::Exited& exited);
  std::string LastWordsOf(Rank rank, Generation generation);

  // run_zygote.cc: the process that ranks are copied from
  void EnsureZygote();
  bool AwaitsZygote() const;
  void GiveZygoteTime();
  void HandleZygote(const shim::Zygote& zygote);
  std::string WhyNoZygote(const shim::Zygote& zygote) const;

  // run_hang.cc: ranks that live and do nothing
  void WatchForHangs();
  void EndHang(const Hang& hang);
  void KillRank(Rank rank, Ending reason);
  void GiveUpOn(Rank rank, Generation spawned);

  // run_rules.cc: what their lines say
  Status StartRules();
  std::function<void(const LogId&, std::string_view)> RuleTap();
  void BeginRules();
  void TellRules(Phase before, const Event& event);
  void RuleFired(const rules::Firing& firing);
  void ReportRuleLosses();

  // run_watch.cc: what is seen and written down
  void ObserveRank(Rank rank);
  void Drain();
  void DrainLater();
  void NoteExit(const Event& event);
  void NotePhase(Phase before, const Plan& plan);
  void NoteQuiesced();
  void NoteFault(const std::string& decision);
  std::string WhyNotStarted(const Error& error) const;
  void TellFaultLater();
  void TellRecovery();
  void TellReplay();
  void ReportLosses();
  void WriteFaults(bool now);
  void WriteFaultsLater();
  void Housekeep();

  // run_end.cc: the end
  RunOutcome End();
  void NoteCommitted();
  void LeaveShim();
  void Sweep();
  void LetGoOfSignals();
  std::string FormatResult(const Verdict& verdict) const;
  void ReportRecordLoss();
  void TellResult(const Verdict& verdict);
  void TellLost();
  void TellWhatNext(const Verdict& verdict);
  std::string ShortPath(const std::string& path) const;

  const RunOptions& options_;
  const Clock& clock_;
  RunFolder folder_;
  const std::string run_id_;
  std::shared_ptr<Console> console_;
  EventLog events_;
  Accounting accounting_;
  HangWatch hang_watch_;
  std::vector<int> pids_;      ///< by rank, of its newest process
  std::vector<Ending> kills_;  ///< by rank: what its process is being killed for
  JobState state_;
  std::deque<Event> pending_;
  bool feeding_ = false;

  std::unique_ptr<os::EventLoop> loop_;
  os::SignalFd signals_;
  std::optional<ShimClient> shim_;
  std::optional<os::WatchId> shim_watch_;
  std::optional<os::TimerId> tick_;
  std::optional<os::TimerId> drain_;
  std::optional<os::TimerId> fault_retry_;
  std::optional<Launcher> launcher_;
  std::unique_ptr<rules::RuleThread> rules_;  ///< none without rules; behind the loop
  std::unique_ptr<LogKeeper> logs_;           ///< behind the rules
  std::optional<RankBoard> board_;
  std::optional<RankLinks> links_;  ///< behind the loop that it watches with
  std::string cgroup_;
  std::uint64_t soft_nofile_ = 0;
  bool shim_lost_ = false;
  bool zygote_alive_ = false;  ///< as far as the shim said
  bool zygote_ready_ = false;  ///< it has loaded what its copies need
  bool zygote_was_ready_ = false;
  Instant zygote_began_{};
  int zygote_deaths_ = 0;

  const Instant begin_;
  std::optional<CommittedSteps> committed_;
  std::unique_ptr<GenerationWriter> generations_;
  Generation asked_{};                  ///< newest one that was given to be written
  std::optional<Status> written_;       ///< what became of it
  std::optional<Action> start_;         ///< waits for its generation to be on disk
  std::optional<Instant> words_until_;  ///< of this generation: how long crashes may speak
  Instant generation_begin_{};
  Instant worker_started_{};  ///< the last one
  Instant ended_{};
  bool reports_steps_ = false;  ///< a rank took the page for its steps
  Generation ready_{};          ///< newest generation whose ranks all stepped
  std::uint64_t durable_ = 0;
  std::vector<FaultRecord> faults_;            ///< those whose worker's output is not complete yet
  std::size_t kept_ = 0;                       ///< ranks that outlived the fault
  std::optional<std::string> fault_sentence_;  ///< of the fault that is being recovered from
  std::optional<std::pair<Rank, Generation>> last_fault_;
  bool told_exec_ = false;
};

}  // namespace muster::agent

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "agent/coordinator/run_loop.h"
#include "agent/launch/sweep.h"
#include "agent/shim/job_cgroup.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;

constexpr auto kShimExit = seconds(15);

/// True when it ended. A Ctrl-C that waits by now leaves it no more than `impatience`.
bool AwaitShimExit(const ShimClient& shim, nanoseconds impatience) {
  Instant deadline = MonotonicClock::now() + kShimExit;
  while (MonotonicClock::now() < deadline) {
    const auto ended = shim.process().Wait(std::chrono::milliseconds(50));
    if (!ended || *ended) return ended.has_value();
    sigset_t waiting;
    ::sigpending(&waiting);
    const bool interrupted = ::sigismember(&waiting, SIGINT) == 1;
    if (interrupted) deadline = std::min(deadline, MonotonicClock::now() + impatience);
  }
  return false;
}

double ToSeconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

RunOutcome RunLoop::End() {
  const Verdict verdict = state_.verdict.value_or(Verdict{false, 1, "ended without a verdict"});
  if (shim_lost_) {
    Sweep();
  } else {
    LeaveShim();
  }
  Drain();
  RunOutcome outcome;
  outcome.exit_code = verdict.exit_code;
  const bool logs_stopped = logs_->Stop(seconds(1));
  const bool generations_stopped = generations_->Stop(seconds(1));
  outcome.hung_writer = !logs_stopped || !generations_stopped;
  WriteFaults(true);
  ReportLosses();
  ReportRecordLoss();
  LetGoOfSignals();
  events_.Add("run_ended", {{"state", verdict.succeeded ? "SUCCEEDED" : "FAILED"},
                            {"exit_code", verdict.exit_code}});
  outcome.result_json = FormatResult(verdict);
  const Status written = folder_.Write("result.json", outcome.result_json);
  TellResult(verdict, written ? "" : written.error().ToString());
  console_->Flush(seconds(1));
  return outcome;
}

void RunLoop::LeaveShim() {
  if (!shim_) return;
  if (shim_watch_) loop_->Remove(*shim_watch_);
  shim_watch_.reset();
  // It kills what is left, removes its cgroup and goes. One that is stopped or hangs is taken down
  // with all that is below it.
  const bool gone = shim_->Goodbye() && AwaitShimExit(*shim_, options_.policy.kill_limit);
  if (gone && (cgroup_.empty() || shim::RemoveCgroup(cgroup_.c_str()))) {
    shim_.reset();
    return;
  }
  Sweep();
}

void RunLoop::Sweep() {
  shim_.reset();
  if (SweepAfterShim(cgroup_) || cgroup_.empty()) return;
  console_->Say(
      fmt::format("muster: the control group {} stays: something in it does not end; "
                  "see its cgroup.procs, then remove it with rmdir",
                  cgroup_));
}

/// The run is over and its result comes next: no signal may cut that short any more. They stay
/// blocked until the program has ended.
void RunLoop::LetGoOfSignals() {
  for (;;) {
    const auto signal = signals_.Read();
    if (!signal || !*signal) break;
    events_.Add("signal", {{"name", os::SignalName((*signal)->number)}});
  }
  signals_.StayBlocked();
}

/// Said by mouth as well: a disk that is still full takes no event either.
void RunLoop::ReportRecordLoss() {
  const bool steps_whole = board_->Flush();
  const bool events_whole = events_.Flush();
  const std::uint64_t steps = board_->unwritten_bytes();
  const std::uint64_t events = events_.unwritten_bytes();
  if (steps_whole && events_whole && steps + events + board_->missed() == 0) return;
  events_.Add("records_lost",
              {{"step_bytes", steps}, {"event_bytes", events}, {"steps_missed", board_->missed()}});
  if (steps + events == 0) return;
  console_->Say(fmt::format("muster: the disk had no room for {} of steps/ and {} of events.jsonl",
                            FormatBytes({static_cast<std::int64_t>(steps)}),
                            FormatBytes({static_cast<std::int64_t>(events)})));
}

std::string RunLoop::FormatResult(const Verdict& verdict) const {
  using Json = nlohmann::ordered_json;
  const LostTime lost = accounting_.lost();
  const auto goodput = accounting_.Goodput();
  const Json json = {{"format", "muster-result/1"},
                     {"state", verdict.succeeded ? "SUCCEEDED" : "FAILED"},
                     {"exit_code", verdict.exit_code},
                     {"reason", verdict.reason},
                     {"run", folder_.path()},
                     {"ended_ns", clock_.Now().time_since_epoch().count()},
                     {"ended_utc", FormatUtc(clock_.Wall())},
                     {"wall_s", ToSeconds(clock_.Now() - begin_)},
                     {"steps", accounting_.steps()},
                     {"restarts", state_.restarts},
                     {"lost",
                      {{"detect_s", lost.detect_s},
                       {"stop_s", lost.stop_s},
                       {"start_s", lost.start_s},
                       {"replay_s", lost.replay_s}}},
                     {"goodput", goodput ? Json(*goodput) : Json()}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void RunLoop::TellResult(const Verdict& verdict, const std::string& result_error) {
  const LostTime lost = accounting_.lost();
  const auto goodput = accounting_.Goodput();
  if (fault_sentence_ && !verdict.succeeded) {
    console_->Say("muster: " + *fault_sentence_);
  }
  if (!verdict.succeeded) {
    console_->Say(
        fmt::format("muster: failed: {} (exit code {})", verdict.reason, verdict.exit_code));
  }
  console_->Say(fmt::format("muster: {} in {:.1f} s: {} steps, {} {}{}",
                            verdict.succeeded ? "finished" : "ended",
                            ToSeconds(clock_.Now() - begin_), accounting_.steps(), state_.restarts,
                            state_.restarts == 1 ? "restart" : "restarts",
                            goodput ? fmt::format(", goodput {:.1f} %", *goodput * 100) : ""));
  if (lost.Total() > 0) {
    console_->Say(fmt::format(
        "muster: lost {:.2f} s: detect {:.2f}, stop {:.2f}, start {:.2f}, replay {:.2f}",
        lost.Total(), lost.detect_s, lost.stop_s, lost.start_s, lost.replay_s));
  }
  if (!result_error.empty()) console_->Say("muster: result.json is missing: " + result_error);
  console_->Say("muster: run folder " + folder_.path());
}

}  // namespace muster::agent

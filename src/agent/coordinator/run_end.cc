#include <fmt/format.h>

#include <filesystem>

#include "agent/coordinator/fault_sentence.h"
#include "agent/coordinator/run_loop.h"
#include "agent/launch/start_advice.h"
#include "agent/run/closing.h"
#include "profile/report/text.h"

namespace muster::agent {
namespace {

using profile::FormatSeconds;
using std::chrono::seconds;

constexpr auto kLastLook = seconds(1);

/// A Ctrl-C is no failure of the job's.
bool WasInterrupted(const Verdict& verdict) {
  return !verdict.succeeded && verdict.reason.starts_with("interrupted by ");
}

/// Of the two logs of a worker, below the run folder, the one that says something, errors first; ""
/// when both are empty.
std::string LogThatTells(const RunFolder& folder, Rank rank, Generation generation) {
  for (const char* stream : {"stderr", "stdout"}) {
    const std::string name =
        fmt::format("logs/rank-{}/gen-{}.{}.log", rank.value(), generation.value(), stream);
    std::error_code absent;
    const auto size = std::filesystem::file_size(folder.Now() + "/" + name, absent);
    if (!absent && size > 0) return name;
  }
  return {};
}

double ToSeconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

RunOutcome RunLoop::End() {
  const Verdict verdict = state_.verdict.value_or(Verdict{false, 1, "ended without a verdict"});
  if (!node_end_) EndNode();  // the loop itself failed
  // Who joins now finds nobody, and needs no token.
  control_.reset();
  join_.reset();
  NoteCommitted(kLastLook);
  RunOutcome outcome;
  outcome.exit_code = verdict.exit_code;
  const bool generations_stopped = generations_->Stop(seconds(1));
  outcome.hung_writer = node_end_->hung_writer || !generations_stopped || committed_->hangs();
  if (!node_end_->left_cgroup.empty()) {
    console_->Say(fmt::format(
        "muster: the control group {0} stays: something in it does not end; what it is: cat "
        "{0}/*/cgroup.procs; once it has ended: find {0} -depth -type d -exec rmdir {{}} \\;",
        node_end_->left_cgroup));
  }
  WriteFaults(true);
  ReportRecordLoss();
  LetGoOfSignals();
  events_.Add("run_ended", {{"state", verdict.succeeded ? "SUCCEEDED" : "FAILED"},
                            {"exit_code", verdict.exit_code},
                            {"reason", verdict.reason}});
  ended_ = clock_.Now();
  accounting_.Ended(ended_, verdict.succeeded);
  TellRecovery();
  outcome.result_json = FormatResult(verdict);
  const Status written = folder_.Write("result.json", outcome.result_json);
  TellResult(verdict);
  if (!written && !folder_.Now().empty()) {
    console_->Say("muster: result.json is missing: " + written.error().ToString());
  }
  TellWhatNext(verdict);
  console_->Flush(seconds(1));
  return outcome;
}

/// Of a commit that its writer did not live to tell.
void RunLoop::NoteCommitted(nanoseconds limit) {
  const auto newest = committed_->Newest(limit);
  if (!newest || *newest <= durable_) return;
  durable_ = *newest;
  events_.Add("checkpoint", {{"gen", state_.generation.value()}, {"step", durable_}});
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
  for (const std::string& loss : events_.losses().InWords()) console_->Say("muster: " + loss);
  const bool steps_whole = steps_->Flush();
  const bool events_whole = events_.Flush();
  const std::uint64_t steps = steps_->unwritten_bytes();
  const std::uint64_t events = events_.unwritten_bytes();
  if (steps_whole && events_whole && steps + events + missed_steps_ == 0) return;
  events_.Add("records_lost",
              {{"step_bytes", steps}, {"event_bytes", events}, {"steps_missed", missed_steps_}});
  if (steps + events == 0) return;
  console_->Say(fmt::format("muster: the disk had no room for {} of steps/ and {} of events.jsonl",
                            FormatBytes({static_cast<std::int64_t>(steps)}),
                            FormatBytes({static_cast<std::int64_t>(events)})));
}

std::string RunLoop::FormatResult(const Verdict& verdict) const {
  const std::string now = folder_.Now();
  return agent::FormatResult(
      {.succeeded = verdict.succeeded,
       .exit_code = verdict.exit_code,
       .reason = verdict.reason,
       .folder = now.empty() ? folder_.path() : now,
       .begin = begin_,
       .ended = ended_,
       .steps = reports_steps_ ? std::optional(accounting_.steps()) : std::nullopt,
       .restarts = state_.restarts,
       .lost = accounting_.lost(),
       .goodput = accounting_.Goodput()},
      clock_);
}

/// What happened, the time lost, where to look, what to type next.
void RunLoop::TellResult(const Verdict& verdict) {
  const auto goodput = accounting_.Goodput();
  const std::string took = FormatSeconds(ToSeconds(ended_ - begin_));
  if (verdict.succeeded) {
    console_->Say("muster: finished in " + took);
  } else {
    // A reason that is not the fault's says nothing of one that was not told yet.
    const bool told = !fault_sentence_ || verdict.reason.starts_with(*fault_sentence_) ||
                      (state_.fault && IsOnly(Headline(*state_.fault), *fault_sentence_) &&
                       verdict.reason.starts_with(Headline(*state_.fault)));
    if (!told) console_->Say("muster: " + *fault_sentence_);
    console_->Say(WasInterrupted(verdict)
                      ? fmt::format("muster: {} after {}", verdict.reason, took)
                      : fmt::format("muster: failed after {}: {}", took, verdict.reason));
  }
  console_->Say(fmt::format(
      "muster: {}, {}{}{}",
      reports_steps_ ? Counted(accounting_.steps(), "step") : "steps not reported",
      Counted(state_.restarts, "restart"),
      goodput ? ", " + profile::GoodputInWords(*goodput, accounting_.StruckEarly()) : "",
      verdict.succeeded ? "" : fmt::format(", exit code {}", verdict.exit_code)));
  TellLost();
}

void RunLoop::TellLost() {
  if (accounting_.faults() == 0) return;
  const LostSeconds lost = accounting_.lost();
  console_->Say(fmt::format("muster: lost {} to {}: {}", profile::LostInWords(lost),
                            Counted(accounting_.faults(), "fault"), profile::LostInParts(lost)));
}

void RunLoop::TellWhatNext(const Verdict& verdict) {
  // Of a fault that was survived, or before a Ctrl-C, there is nothing to be looked up.
  const bool of_fault =
      !verdict.succeeded && !WasInterrupted(verdict) && last_fault_ && fault_sentence_;
  WhatNext next{.succeeded = verdict.succeeded, .durable = durable_};
  if (of_fault) next.log = LogThatTells(folder_, last_fault_->rank, last_fault_->spawned);
  if (of_fault) next.rank = last_fault_->rank.value();
  if (!verdict.succeeded) {
    next.advice = ModuleAdvice(options_.command, options_.program, verdict.reason);
  }
  agent::TellWhatNext(*console_, folder_, next, options_.job_yaml);
}

std::string RunLoop::ShortPath(const std::string& path) const { return agent::ShortPath(path); }

}  // namespace muster::agent

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "agent/coordinator/plan.h"
#include "agent/coordinator/same_words.h"
#include "base/text.h"
#include "os/signals.h"
#include "spec/env.h"

namespace muster::agent {
namespace {

constexpr int kNoRestartLeft = 93;
constexpr int kUsage = 2;

/// Steps must be known: for a script that publishes none, "the same step" cannot be said.
bool IsRepetition(const Fault& now, const Fault& before) {
  // What stopped the rank that a follower speaks of may have been another thing each time.
  if (IsFollower(now.ending, now.steps)) return false;
  return now.steps && before.steps && IsOwnCrash(now.ending) && now.step == before.step &&
         now.ending.code == before.ending.code && now.ending.signal == before.ending.signal &&
         SameWords(now.exception, before.exception);
}

bool HasWorked(const JobState& state) {
  return state.worked || state.fault->step > 0 ||
         std::ranges::any_of(state.ranks, [](const RankStatus& rank) { return rank.step > 0; });
}

/// How programs say that they do not understand their command line (argparse, muster-train, Python
/// of a script that it cannot open): in the first generation, before anybody worked.
bool IsUsageError(const JobState& state, const Policy& policy) {
  const Fault& fault = *state.fault;
  const Ending& ending = fault.ending;
  const bool code = ending.signal == 0 && ending.start_error == 0 && ending.code == kUsage;
  if (!code || fault.generation != Generation(1)) return false;
  // Of who publishes no steps the time has to tell.
  return !HasWorked(state) && (fault.steps || fault.lived < policy.early);
}

/// A worker of ours that says so itself. Once anybody has worked it is the place that is at fault,
/// and the next start may be at another one; but who says it after steps of its own has lost what
/// it had, its dataset, and a start that finds it lost as well would hide why.
bool IsRefusal(const JobState& state) {
  const Fault& fault = *state.fault;
  return fault.refused && IsOwnCrash(fault.ending) && (fault.step > 0 || !HasWorked(state));
}

std::size_t Recent(const std::vector<Instant>& times, Instant now, nanoseconds period) {
  return static_cast<std::size_t>(
      std::ranges::count_if(times, [&](Instant time) { return now - time < period; }));
}

/// "rank 1", "ranks 1, 3 and 5".
std::string Who(const Fault& fault) {
  constexpr std::size_t kMost = 8;
  std::vector<std::uint32_t> ranks = {fault.rank.value()};
  for (const Rank other : fault.others) ranks.push_back(other.value());
  std::ranges::sort(ranks);
  std::string text = fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", ranks[0]);
  const std::size_t named = std::min(ranks.size(), kMost);
  for (std::size_t i = 1; i < named; ++i) {
    const bool last = i + 1 == ranks.size();
    text += fmt::format("{}{}", last ? " and " : ", ", ranks[i]);
  }
  if (ranks.size() > named) text += fmt::format(" and {} more", ranks.size() - named);
  return text;
}

/// What struck, as the first half of a sentence.
std::string Subject(const Fault& fault) {
  std::string text = Headline(fault);
  if (!fault.exception.empty() && IsOwnCrash(fault.ending)) text += ": " + fault.exception;
  text.resize(text.find_last_not_of(" .,;:") + 1);
  return text;
}

/// `why` ends the run; the verdict says of what, too.
Decision Fail(int exit_code, const Fault& fault, std::string why) {
  Decision decision;
  decision.verdict = {false, exit_code, Subject(fault) + "; " + why};
  decision.reason = std::move(why);
  return decision;
}

Decision Restart(RestartKind kind, std::string reason) {
  Decision decision;
  decision.restart = kind;
  decision.reason = std::move(reason);
  return decision;
}

}  // namespace

bool IsOwnCrash(const Ending& ending) {
  if (ending.start_error != 0) return false;
  if (ending.signal == 0) return ending.code != 0;
  constexpr int kRaised[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  return std::ranges::find(kRaised, ending.signal) != std::end(kRaised);
}

bool IsFollower(const Ending& ending, bool steps) {
  return steps && ending.signal == 0 && ending.start_error == 0 &&
         ending.code == spec::kFollowerExit;
}

Instant DiedAt(const Fault& fault) {
  const bool from_outside = fault.ending.signal != 0 && !IsOwnCrash(fault.ending);
  if (!from_outside || fault.alive == Instant{}) return fault.ending.time;
  return std::min(fault.alive, fault.ending.time);
}

std::string Describe(const Ending& ending) {
  if (!ending.with.empty()) return "lost with " + ending.with;
  if (ending.start_error != 0) {
    return fmt::format("could not be started: {}{}{}", std::strerror(ending.start_error),
                       ending.advice.empty() ? "" : "; ", ending.advice);
  }
  if (!ending.rule.name.empty()) {
    return fmt::format("killed by log rule '{}': {}", ending.rule.name, ending.rule.why);
  }
  if (!ending.hang.empty()) return "hung: " + ending.hang;
  std::string how = ending.signal != 0 ? "killed by " + os::SignalName(ending.signal)
                                       : fmt::format("ended with exit code {}", ending.code);
  // Whether it was itself among them the kernel's count does not say.
  if (ending.oom_kills > 0) {
    how += fmt::format("; memory ran out on its host, the kernel killed {} of the run",
                       Counted(ending.oom_kills, "process", "es"));
  }
  return how;
}

int ExitCodeOf(const Ending& ending) {
  if (ending.start_error != 0) return ending.start_error == ENOENT ? 127 : 126;
  return ending.signal != 0 ? 128 + ending.signal : ending.code;
}

bool IsEarlyTwin(const JobState& state, const Policy& policy) {
  if (!state.fault || !state.last_fault) return false;
  const Fault& now = *state.fault;
  const Fault& before = *state.last_fault;
  return !now.steps && !before.steps && now.lived < policy.early && before.lived < policy.early &&
         IsOwnCrash(now.ending) && now.ending.code == before.ending.code &&
         now.ending.signal == before.ending.signal && !now.exception.empty() &&
         SameWords(now.exception, before.exception);
}

bool CameToNoWork(const JobState& state, const Policy& policy) {
  return state.fault->ending.never_found || IsUsageError(state, policy);
}

std::uint32_t MostRestarts(const Policy& policy) {
  const std::uint32_t most =
      policy.process_restarts * (policy.full_restarts + 1) + policy.full_restarts;
  return std::min(most, policy.total_restarts.value_or(most));
}

bool IsCommandAtFault(int start_error) {
  constexpr int kFinal[] = {ENOENT, EACCES, ENOEXEC, ENOTDIR, ELOOP, E2BIG};
  return std::ranges::find(kFinal, start_error) != std::end(kFinal);
}

std::string Headline(const Fault& fault) {
  std::string text = fmt::format("{} {}", Who(fault), Describe(fault.ending));
  if (!fault.steps) return text;
  if (fault.step != 0) return text + fmt::format(" at step {}", fault.step);
  return text + (fault.others.empty() ? " before its first step" : " before their first step");
}

std::vector<Rank> OthersOf(const JobState& state) {
  const Fault& fault = *state.fault;
  const bool own = IsOwnCrash(fault.ending);
  std::vector<Rank> others;
  for (std::uint32_t i = 0; i < state.ranks.size(); ++i) {
    const RankStatus& rank = state.ranks[i];
    if (rank.state != RankState::kFailed || !rank.ending || Rank(i) == fault.rank) continue;
    const bool same = Describe(*rank.ending) == Describe(fault.ending);
    if (same && (!own || SameWords(rank.exception, fault.exception))) others.emplace_back(i);
  }
  return others;
}

Decision PlanRestart(const JobState& state, Instant now, const Policy& policy) {
  const Fault& fault = *state.fault;
  const int own_code = ExitCodeOf(fault.ending);
  if (fault.ending.never_found) {
    return Fail(own_code, fault, "not started again: that would not help");
  }
  if (IsUsageError(state, policy)) {
    return Fail(own_code, fault,
                "not started again: exit code 2 before the first step means that the command line "
                "was not understood");
  }
  if (IsRefusal(state)) {
    return Fail(own_code, fault, "not started again: another start would end in the same way");
  }
  const int refusal = state.use_zygote ? fault.ending.start_error : 0;
  if (refusal == ESRCH && state.zygote_served) {
    return Restart(RestartKind::kNewZygote, "the fork server died; a new one is started");
  }
  if (refusal == ETIMEDOUT) {
    return Restart(
        RestartKind::kExec,
        "the fork server does not answer and was killed; workers are executed from now on");
  }
  if (refusal == EBUSY || refusal == ESRCH) {
    return Restart(RestartKind::kExec,
                   "the fork server cannot copy itself; workers are executed from now on");
  }
  const auto again = [&](const Fault& before) { return IsRepetition(fault, before); };
  if (std::ranges::any_of(state.crashes, again)) {
    return Fail(own_code, fault,
                "not started again: the same, at the same step, for the second time");
  }
  if (state.early_twins > 0 && IsEarlyTwin(state, policy)) {
    return Fail(own_code, fault,
                "not started again: the same, soon after the start, for the third time");
  }
  if (MostRestarts(policy) == 0) {
    return Fail(own_code, fault, "restarts are off");
  }
  if (fault.steps && state.without_progress >= policy.no_progress_limit) {
    return Fail(kNoRestartLeft, fault,
                fmt::format("no new durable step in {} generations (the newest is {})",
                            state.without_progress, state.best_durable));
  }
  if (policy.total_restarts && state.restarts >= *policy.total_restarts) {
    return Fail(kNoRestartLeft, fault,
                fmt::format("no restart left ({} of {} in the whole run)", state.restarts,
                            *policy.total_restarts));
  }
  const auto processes = Recent(state.process_restarts, now, policy.eval_period);
  if (processes < policy.process_restarts) {
    const bool in_place = state.aborted && MayGoOnInPlace(state, policy);
    const char* how = in_place ? ", in place" : state.without_shim ? ", with a new shim" : "";
    return Restart(
        in_place ? RestartKind::kInPlace : RestartKind::kProcesses,
        fmt::format("process restart {} of {}{}", processes + 1, policy.process_restarts, how));
  }
  const auto fulls = Recent(state.full_restarts, now, policy.eval_period);
  if (fulls < policy.full_restarts) {
    return Restart(RestartKind::kFull,
                   fmt::format("full restart {} of {}", fulls + 1, policy.full_restarts));
  }
  return Fail(kNoRestartLeft, fault, fmt::format("no restart left ({} used)", state.restarts));
}

}  // namespace muster::agent

#include "profile/live/live_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "profile/report/read_run.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

constexpr std::size_t kStepTimes = 20;
constexpr std::size_t kMostHappenings = 1000;
constexpr Bytes kMostEvents = 64_MiB;
constexpr Bytes kMostSteps = 8_KiB;  // some thirty rows; the last twenty count
constexpr Bytes kSmallFile = 1_MiB;

bool HasEnded(RankLive::State state) {
  switch (state) {
    case RankLive::State::kStopped:
    case RankLive::State::kFailed:
    case RankLive::State::kFinished:
      return true;
    case RankLive::State::kWaiting:
    case RankLive::State::kStarted:
    case RankLive::State::kRunning:
    case RankLive::State::kPaused:
    case RankLive::State::kHanging:
      return false;
  }
  return false;
}

std::string Of(std::string_view name, const std::optional<std::uint64_t>& number) {
  return number ? fmt::format("{}{}", name, *number) : std::string();
}

}  // namespace

std::string_view NameOf(RankLive::State state) {
  switch (state) {
    case RankLive::State::kWaiting:
      return "waiting";
    case RankLive::State::kStarted:
      return "started";
    case RankLive::State::kRunning:
      return "running";
    case RankLive::State::kPaused:
      return "paused";
    case RankLive::State::kHanging:
      return "hanging";
    case RankLive::State::kStopped:
      return "stopped";
    case RankLive::State::kFailed:
      return "failed";
    case RankLive::State::kFinished:
      return "finished";
  }
  return "";
}

std::optional<double> RankLive::StepSeconds() const {
  if (times_us.empty()) return std::nullopt;
  std::vector<std::uint32_t> sorted(times_us.begin(), times_us.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle / 1e6;
}

Result<LiveRun> LiveRun::Open(const RunFiles& files) {
  return LiveRun(files, MUSTER_TRY(ReadFacts(files)));
}

LiveRun::LiveRun(const RunFiles& files, RunFacts facts)
    : files_(&files),
      facts_(std::move(facts)),
      ranks_(facts_.ranks, RankLive{.loss = std::numeric_limits<double>::quiet_NaN()}),
      events_("events.jsonl", kMostEvents) {
  for (std::uint32_t rank = 0; rank < facts_.ranks; ++rank) {
    steps_.emplace_back(fmt::format("steps/rank-{}.jsonl", rank), kMostSteps);
  }
}

/// The lock before the result: a run that ends in between is then seen as ended, not as lost.
void LiveRun::ReadState() {
  const bool held = files_->LockHeld();
  const auto text = files_->ReadWhole("result.json", kSmallFile);
  state_ = held ? State::kRunning : State::kLost;
  if (!text || held) return;
  const auto result = ReadRunResult(*text);
  if (!result) return;
  state_ = result->state == "SUCCEEDED" ? State::kSucceeded : State::kFailed;
  reason_ = result->reason;
  ended_ns_ = result->ended_ns;
}

void LiveRun::TakeToldEnd() {
  if (state_ != State::kLost || !told_end_) return;
  if (told_end_->state != "SUCCEEDED" && told_end_->state != "FAILED") return;
  state_ = told_end_->state == "SUCCEEDED" ? State::kSucceeded : State::kFailed;
  reason_ = told_end_->reason;
  ended_ns_ = told_end_->t_ns;
}

std::vector<Happening> LiveRun::Poll() {
  std::vector<Happening> happenings;
  // What a run that is over wrote is then read to its end.
  ReadState();
  events_.Poll(*files_, [&](std::string_view line) {
    if (const auto event = ReadEvent(line)) See(*event, happenings);
  });
  TakeToldEnd();
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) PollSteps(rank);
  // Files of several ranks are not of one moment: who seems to lag is looked at once more.
  const auto farthest = Farthest();
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].step != farthest) PollSteps(rank);
  }
  return happenings;
}

void LiveRun::PollSteps(std::size_t rank) {
  steps_[rank].Poll(*files_, [&](std::string_view line) {
    if (const auto row = ReadStep(line)) SeeStep(*row, ranks_[rank]);
  });
}

std::optional<std::uint64_t> LiveRun::Farthest() const {
  std::optional<std::uint64_t> farthest;
  for (const RankLive& rank : ranks_) {
    if (rank.step) farthest = std::max(farthest.value_or(0), *rank.step);
  }
  return farthest;
}

void LiveRun::SeeStep(const StepRow& row, RankLive& rank) {
  if (row.generation > rank.generation) rank.times_us.clear();
  // A row may come behind the end of its process, and one of before behind a new start or a hang.
  const bool goes_on = !HasEnded(rank.state) && rank.state != RankLive::State::kPaused &&
                       row.end_ns() > rank.state_ns;
  if (row.generation > rank.generation || (row.generation == rank.generation && goes_on)) {
    rank.state = RankLive::State::kRunning;
    rank.generation = row.generation;
  }
  rank.step = row.step;
  rank.loss = row.loss;
  rank.end_ns = row.end_ns();
  if (row.generation < rank.generation) return;
  rank.times_us.push_back(row.total_us);
  if (rank.times_us.size() > kStepTimes) rank.times_us.pop_front();
}

void LiveRun::SeeExit(const EventRecord& event, RankLive& rank) {
  if (event.cause == "finished") {
    rank.state = RankLive::State::kFinished;
  } else if (event.cause == "stopped") {
    rank.state = RankLive::State::kStopped;
  } else {
    rank.state = RankLive::State::kFailed;
  }
  rank.note.clear();
  if (rank.state != RankLive::State::kFailed) return;
  rank.note = event.code ? fmt::format("exit {}", *event.code) : event.signal;
}

void LiveRun::See(const EventRecord& event, std::vector<Happening>& happenings) {
  if (event.event == "generation_started" && event.generation) generation_ = *event.generation;
  if (event.event == "checkpoint" && event.step) checkpoint_ = event.step;
  if (event.event == "run_ended") told_end_ = event;
  if (event.event == "pause") {
    for (RankLive& rank : ranks_) {
      if (!HasEnded(rank.state)) rank.state = RankLive::State::kPaused;
    }
  }
  if (event.event == "ranks_ready" && event.generation) {
    for (RankLive& rank : ranks_) {
      if (HasEnded(rank.state)) continue;
      rank.state = RankLive::State::kRunning;
      if (*event.generation > rank.generation) rank.times_us.clear();
      rank.generation = std::max(rank.generation, *event.generation);
    }
  }
  if (event.rank && *event.rank < ranks_.size()) {
    RankLive& rank = ranks_[*event.rank];
    if (event.event == "hang") {
      rank.state = RankLive::State::kHanging;
      rank.state_ns = event.t_ns;
      rank.generation = std::max(rank.generation, event.generation.value_or(0));
    }
    if (event.event == "worker_exited") SeeExit(event, rank);
    if (event.event == "worker_started") {
      rank.state = RankLive::State::kStarted;
      rank.generation = event.generation.value_or(rank.generation);
      rank.times_us.clear();
      rank.note.clear();
    }
  }
  std::string text = TextOf(event);
  if (text.empty()) return;
  if (happenings.size() >= kMostHappenings) happenings.erase(happenings.begin());
  happenings.push_back({.t_ns = event.t_ns, .text = std::move(text)});
}

/// What people are told of an event; "" for what the ranks' states show.
std::string LiveRun::TextOf(const EventRecord& event) const {
  const std::string rank = event.rank ? fmt::format("rank {}", *event.rank) : "a rank";
  if (event.event == "generation_started" && event.generation.value_or(0) > 1) {
    return fmt::format("generation {} started{}", *event.generation,
                       Of(", from step ", event.resume_step));
  }
  if (event.event == "ranks_ready" && event.generation.value_or(0) > 1) {
    return fmt::format("every rank steps again, in generation {}", *event.generation);
  }
  if (event.event == "fault") {
    return fmt::format("{} {}{}", rank, event.cause, Of(" at step ", event.step));
  }
  if (event.event == "hang") {
    return fmt::format("{} hangs{}{}", rank, Of(" at step ", event.step),
                       event.what.empty() ? "" : ": " + event.what);
  }
  if (event.event == "log_rule") {
    return fmt::format("log rule {} fired on {}: {}", event.rule, rank, event.why);
  }
  if (event.event == "node_unwell") return fmt::format("the kernel says: {}", event.what);
  if (event.event == "node_joined") return fmt::format("node {} joined", event.node);
  if (event.event == "node_lost") {
    return fmt::format("node {} is lost: {}", event.node, event.reason);
  }
  if (event.event == "shim_lost") {
    return fmt::format("the shim of node {} is lost: {}", event.node, event.reason);
  }
  if (event.event == "log_dropped") {
    return fmt::format("{} of {} {} were not kept{}", Counted(event.bytes, "byte"), rank,
                       event.stream, event.reason.empty() ? "" : ": " + event.reason);
  }
  if (event.event == "signal") return fmt::format("muster run got {}", event.name);
  if (event.event == "run_ended") {
    return fmt::format("the run ended: {}, exit code {}", event.state, event.exit_code);
  }
  return {};
}

}  // namespace muster::profile

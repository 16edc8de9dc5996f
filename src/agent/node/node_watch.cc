#include <algorithm>
#include <utility>

#include "agent/node/node_runner.h"
#include "agent/run/fault_record.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Until every rank stepped, a short period makes the recovery's sentence prompt; its figures come
// from the workers' own clocks either way.
constexpr auto kPublishSoon = milliseconds(10);
constexpr auto kPublishUsual = milliseconds(100);
constexpr auto kSoonFor = seconds(30);
constexpr auto kWordsRetry = milliseconds(20);
// Processes are looked at when a heartbeat has been still for a while, and the less often the
// longer it is: /proc costs more than a page.
constexpr auto kStill = milliseconds(150);
constexpr int kLooks = 8;
constexpr auto kTracerLook = seconds(1);
constexpr nanoseconds kSilentLook = seconds(2);

bool SamePlace(const os::Pulse& a, const os::Pulse& b) {
  return a.phase == b.phase && a.phase_since == b.phase_since && a.step == b.step &&
         a.generation == b.generation;
}

}  // namespace

void NodeRunner::Publish() {
  if (!pages_) return;
  report::Progress progress;
  pages_->Drain([&](Rank rank, const os::StepRecord& record) {
    const auto generation = static_cast<std::uint32_t>(generation_.value());
    At(rank).stepped = At(rank).stepped || record.generation == generation;
    progress.steps.push_back({rank, record});
  });
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    const Rank rank = ranks_.At(i);
    progress.places.push_back({rank, pages_->Read(rank)});
  }
  progress.complete = true;
  progress.missed = pages_->missed();
  Look(&progress);
  LookAtSilent(&progress);
  Tell(std::move(progress));
}

void NodeRunner::Look(report::Progress* progress) {
  const Instant now = options_.clock->Now();
  nanoseconds longest{};
  for (auto& [rank, pulse, sight, io] : progress->places) {
    Worker& worker = At(rank);
    if (!SamePlace(pulse, worker.pulse) || worker.moved == Instant{}) worker.moved = now;
    worker.pulse = pulse;
    const bool watched = worker.pid != 0 && pulse.generation == generation_;
    if (watched) longest = std::max(longest, now - worker.moved);
  }
  if (longest < kStill || now < next_look_) return;
  next_look_ = now + std::min<nanoseconds>(longest / kLooks, kPublishUsual * 20);
  // Of everybody: the one that is stopped may be one of those that wait.
  for (auto& [rank, pulse, sight, io] : progress->places) {
    if (At(rank).pid == 0) continue;
    sight = SightOf(At(rank), longest);
  }
}

/// Ten times a second of every rank, where steps take long: what a debugger did matters only to who
/// is about to be called late.
std::optional<os::ProcessSight> NodeRunner::SightOf(Worker& worker, nanoseconds still) {
  if (still >= kTracerLook) {
    const auto seen = os::SeeProcess(worker.pid);
    return seen ? std::optional(*seen) : std::nullopt;
  }
  if (worker.watched != worker.pid) {
    worker.watch.reset();
    worker.watched = worker.pid;
    if (auto watch = os::ProcessWatch::Open(worker.pid)) worker.watch = *std::move(watch);
  }
  const auto seen = worker.watch ? worker.watch->See() : Error(Code::kNotFound, "it is gone");
  return seen ? std::optional(*seen) : std::nullopt;
}

/// Of ranks without heartbeat /proc is all that tells of them.
void NodeRunner::LookAtSilent(report::Progress* progress) {
  const Instant now = options_.clock->Now();
  if (now < next_silent_look_) return;
  const nanoseconds limit = options_.job->hang_limit.value_or(kSilentLook * kLooks);
  next_silent_look_ = now + std::clamp<nanoseconds>(limit / kLooks, kPublishUsual, kSilentLook);
  for (auto& [rank, pulse, sight, io] : progress->places) {
    if (At(rank).pid == 0 || pulse.generation == generation_) continue;
    const auto seen = os::SeeProcess(At(rank).pid);
    const auto bytes = os::SeeIo(At(rank).pid);
    if (!seen || !bytes) continue;
    sight = *seen;
    io = *bytes;
  }
}

void NodeRunner::PublishLater() {
  if (publish_) loop_.Remove(*publish_);
  const bool all_stepped = std::ranges::all_of(workers_, &Worker::stepped);
  const bool soon = !all_stepped && options_.clock->Now() - generation_begin_ < kSoonFor;
  publish_ = loop_.After(soon ? kPublishSoon : kPublishUsual, [this] {
    publish_.reset();
    Publish();
    PublishLater();
  });
}

/// Once the dead worker's output is complete, at the latest after the second that the log keeper
/// gives it.
void NodeRunner::TellWords(bool now) {
  std::vector<order::TellWords> waiting;
  for (const order::TellWords& order : std::exchange(words_, {})) {
    const LogId out{order.rank, order.spawned, Stream::kOut};
    const LogId err{order.rank, order.spawned, Stream::kErr};
    if (!now && (!logs_->Ended(out) || !logs_->Ended(err))) {
      waiting.push_back(order);
      continue;
    }
    report::Words words{order.rank, order.spawned, logs_->Tail(out), logs_->Tail(err)};
    const auto error_file =
        options_.files->ReadAll(launcher_->ErrorFile(order.rank, order.spawned), kTailBytes);
    if (error_file) words.error_file = *error_file;
    words.environment = launcher_->RedactedEnvironment(
        order.rank,
        {order.spawned, order.restart_count, order.world, order.master_addr, order.master_port});
    logs_->Forget(order.generation);
    Tell(std::move(words));
  }
  words_.insert(words_.end(), waiting.begin(), waiting.end());
  if (!words_.empty()) TellWordsLater();
}

void NodeRunner::TellWordsLater() {
  if (words_retry_) return;
  words_retry_ = loop_.After(kWordsRetry, [this] {
    words_retry_.reset();
    TellWords(false);
  });
}

void NodeRunner::Housekeep() {
  TellLosses();
  CountOomKills();
  housekeep_ = loop_.After(seconds(1), [this] { Housekeep(); });
}

void NodeRunner::TellLosses() {
  report::Losses losses{logs_->TakeLosses(), rules_ ? rules_->TakeMissed() : 0};
  if (!losses.logs.empty() || losses.rules_missed > 0) Tell(std::move(losses));
}

Status NodeRunner::StartRules() {
  if (options_.job->log_rules.empty()) return Ok();
  auto engine = MUSTER_TRY(rules::RuleEngine::Create(options_.job->log_rules, options_.job->ranks));
  rules_ = MUSTER_TRY(
      rules::RuleThread::Start(std::move(engine), *options_.clock, [this](rules::Firing firing) {
        loop_.Post([this, firing = std::move(firing)] { Tell(report::RuleFired{firing}); });
      }));
  return Ok();
}

std::vector<Generation> NodeRunner::SpawnedOfJob() const {
  std::vector<Generation> spawned(options_.job->ranks);
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    spawned[ranks_.At(i).value()] = workers_[i].spawned;
  }
  return spawned;
}

/// Of ranks elsewhere nothing is expected here.
void NodeRunner::BeginRules() {
  if (!rules_) return;
  rules_->Begin(generation_, SpawnedOfJob());
  for (std::uint32_t i = 0; i < options_.job->ranks; ++i) {
    if (!ranks_.Has(Rank(i))) rules_->Finish(Rank(i));
  }
}

std::function<void(const LogId&, std::string_view)> NodeRunner::RuleTap() {
  if (!rules_) return {};
  return [thread = rules_.get()](const LogId& id, std::string_view bytes) {
    thread->Bytes(id, bytes);
  };
}

}  // namespace muster::agent

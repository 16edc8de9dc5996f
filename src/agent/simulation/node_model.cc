#include "agent/simulation/node_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "spec/env.h"

namespace muster::agent::simulation {
namespace {

constexpr nanoseconds kOrphans = seconds(10);
constexpr int kPid = 100;

}  // namespace

NodeModel::NodeModel(World& world, Truth& truth, const Program& program, const Mishaps& mishaps,
                     std::string name, std::uint32_t ranks, OnReport on_report)
    : world_(world),
      truth_(truth),
      program_(program),
      mishaps_(mishaps),
      life_(world.loop()),
      name_(std::move(name)),
      on_report_(std::move(on_report)),
      ranks_{0, ranks},
      loaded_(!program.zygote) {
  if (loaded_) return;
  life_.After(world_.Delay(milliseconds(100), seconds(9)), [this] {
    loaded_ = true;
    Tell(report::ZygoteReady{kPid});
    StartWhenClear();
  });
}

NodeModel::~NodeModel() { truth_.Orphan(this); }

void NodeModel::Send(const Order& order) {
  std::visit([this](const auto& what) { Do(what); }, order);
}

void NodeModel::Do(const order::Seat& order) {
  TellWords();
  ranks_.first = order.first;
}

void NodeModel::Do(const order::Renew&) {
  EndAll(true);
  shim_ = true;
  loss_untold_ = false;
}

void NodeModel::Do(const order::Start& order) {
  start_ = order;
  StartWhenClear();
}

/// Two processes of one rank must not be, whoever orders it.
bool NodeModel::MayStart(const order::Start& order) const {
  if (order.generation <= generation_) return false;
  return std::ranges::none_of(workers_, [&](const auto& entry) {
    return std::ranges::find(order.ranks, entry.second.rank) != order.ranks.end();
  });
}

/// Older processes of its ranks go first.
bool NodeModel::MakesRoom() {
  for (const auto& [id, worker] : std::map(workers_)) {
    if (std::ranges::find(start_->ranks, worker.rank) == start_->ranks.end()) continue;
    Do(order::Kill{worker.rank});
    const Instant limit = *workers_.at(id).killed + kDieLimit;
    if (world_.Now() >= limit) {
      DieLate(id);
      continue;
    }
    life_.After(limit - world_.Now(), [this] { StartWhenClear(); });
    return true;
  }
  return false;
}

void NodeModel::StartWhenClear() {
  if (!start_ || !loaded_ || MakesRoom()) return;
  const order::Start order = *std::exchange(start_, {});
  if (loss_untold_) return TellLoss();
  if (!shim_) return;
  if (!MayStart(order)) {
    return world_.Violate(fmt::format("{} was given a start that it must refuse", name_));
  }
  truth_.GivenTable(name_, order);
  generation_ = order.generation;
  stopping_ = false;
  for (const auto& [id, worker] : workers_) truth_.GoOn(id, order.generation);
  for (const Rank rank : order.ranks) StartRank(rank, order.generation);
  Tell(report::Begun{order.generation});
  PublishLater();
}

void NodeModel::StartRank(Rank rank, Generation generation) {
  starting_[rank] = generation;
  nanoseconds takes = world_.Delay(milliseconds(1), milliseconds(300));
  if (world_.Chance(mishaps_.slow_start)) takes = world_.Delay(seconds(1), seconds(100));
  life_.After(takes, [this, rank, generation] {
    const auto found = starting_.find(rank);
    if (found == starting_.end() || found->second != generation) return;  // a stop came
    starting_.erase(found);
    if (!world_.Chance(mishaps_.start_error)) return Spawn(rank, generation);
    world_.Note(fmt::format("{}: rank {} cannot be started", name_, rank.value()));
    Tell(report::Exited{rank, generation, 0, {.start_error = EAGAIN, .time = world_.Now()}});
  });
}

void NodeModel::Spawn(Rank rank, Generation generation) {
  const WorkerId id = truth_.Begin(name_, rank, generation, this);
  workers_[id] = {rank, generation};
  PublishLater();
  Tell(report::Started{rank, generation, kPid + static_cast<int>(id), program_.zygote});
  if (program_.ours && program_.in_place) StandSoon(id, false, milliseconds(400));
}

void NodeModel::StandSoon(WorkerId id, bool quiesced, nanoseconds most) {
  const Generation generation = generation_;
  life_.After(world_.Delay(milliseconds(1), most), [this, id, quiesced, generation] {
    const auto found = workers_.find(id);
    if (found == workers_.end() || found->second.ends || stopping_) return;
    // What it meant to unwind from is over.
    if (quiesced && generation != generation_) return;
    if (quiesced) truth_.Quiesce(id);
    Tell(report::Standing{found->second.rank, found->second.spawned, quiesced});
  });
}

void NodeModel::ExitSoon(WorkerId id, Ending ending, nanoseconds most) {
  const auto found = workers_.find(id);
  if (found == workers_.end() || std::exchange(found->second.ends, true)) return;
  life_.After(world_.Delay({}, most), [this, id, ending] { Exit(id, ending, false); });
}

void NodeModel::Exit(WorkerId id, Ending ending, bool by_order) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  const Worker worker = found->second;
  if (!stopping_) Publish();
  workers_.erase(id);
  ending.time = world_.Now();
  Tell(report::Exited{worker.rank, worker.spawned, kPid + static_cast<int>(id), ending,
                      ending.ok() ? "" : "it broke"});
  truth_.End(id, by_order || ending.ok());
  StartWhenClear();
}

/// Of another rank's death: it unwinds by itself, fails because of it, or notices nothing.
void NodeModel::PeerDied(WorkerId worker) {
  const bool unwinds = program_.ours && program_.in_place;
  if (unwinds && world_.Chance(0.3)) return StandSoon(worker, true, milliseconds(100));
  if (!world_.Chance(unwinds ? 0.02 : 0.4)) return;
  const int code = program_.ours ? spec::kFollowerExit : 1;
  ExitSoon(worker, {.code = code}, milliseconds(300));
}

void NodeModel::Finished(WorkerId worker) { ExitSoon(worker, {}, milliseconds(400)); }

void NodeModel::Do(const order::Abort&) {
  for (const auto& [id, worker] : std::map(workers_)) {
    if (world_.Chance(mishaps_.never_unwinds)) continue;
    StandSoon(id, true, milliseconds(700));
  }
}

void NodeModel::Do(const order::Stop& order) {
  start_.reset();
  starting_.clear();
  stopping_ = true;
  if (!shim_ && !loss_untold_) {
    stopped_ = std::max(stopped_, order.generation);
    return Tell(report::Stopped{order.generation});
  }
  if (order.generation <= stopped_) return Tell(report::Stopped{stopped_});
  stop_generation_ = order.generation;
  if (loss_untold_) return TellLoss();
  const std::uint64_t stop = ++stop_;
  // Half of them need no grace.
  const nanoseconds takes =
      world_.Chance(0.5) ? milliseconds(2) : world_.Delay({}, order.grace + milliseconds(50));
  life_.After(takes, [this, stop] { StopNow(stop); });
}

void NodeModel::StopNow(std::uint64_t stop) {
  if (stop != stop_ || !stopping_) return;
  report::Stopped stopped{stop_generation_};
  stopped_ = stop_generation_;
  for (const auto& [id, worker] : std::map(workers_)) {
    if (world_.Chance(mishaps_.dies_late)) {
      ++stopped.left;
      DieLate(id);
    } else {
      Exit(id, {.signal = SIGTERM}, true);
    }
  }
  Tell(stopped);
}

/// It does nothing any more, and its end is heard of when others may run in its place.
void NodeModel::DieLate(WorkerId id) {
  const Worker worker = workers_.at(id);
  workers_.erase(id);
  truth_.End(id, true);
  life_.After(world_.Delay(milliseconds(1), seconds(20)), [this, id, worker] {
    if (!ranks_.Has(worker.rank)) return;  // of an earlier seat
    Tell(report::Exited{worker.rank,
                        worker.spawned,
                        kPid + static_cast<int>(id),
                        {.signal = SIGKILL, .time = world_.Now()}});
  });
}

void NodeModel::Do(const order::Kill& order) {
  for (const auto& [id, worker] : std::map(workers_)) {
    if (worker.rank != order.rank || worker.killed) continue;
    workers_.at(id).killed = world_.Now();
    if (!world_.Chance(mishaps_.dies_late)) {
      ExitSoon(id, {.signal = SIGKILL}, milliseconds(20));
    } else if (!std::exchange(workers_.at(id).ends, true)) {
      truth_.Hang(id);  // in the kernel
    }
  }
}

void NodeModel::Do(const order::TellWords& order) {
  words_.push_back(order);
  life_.After(world_.Delay(milliseconds(1), milliseconds(200)), [this] { TellWords(); });
}

void NodeModel::TellWords() {
  for (const order::TellWords& order : std::exchange(words_, {})) {
    Tell(report::Words{.rank = order.rank, .spawned = order.spawned, .err_tail = "it broke"});
  }
}

/// Now and then nobody answers.
void NodeModel::Do(const order::TakeStacks& order) {
  if (world_.Chance(0.2)) return;
  std::vector<Rank> ranks;
  for (const auto& [id, worker] : workers_) ranks.push_back(worker.rank);
  life_.After(world_.Delay(milliseconds(1), milliseconds(500)), [this, order, ranks] {
    Tell(report::StacksTaken{order.id, ranks});
    Tell(report::Stacks{order.id, ranks, R"({"processes":[]})"});
  });
}

void NodeModel::Do(const order::End&) {
  EndAll(true);
  Tell(report::Ended{});
}

void NodeModel::EndAll(bool by_order) {
  start_.reset();
  starting_.clear();
  ++stop_;
  for (const auto& [id, worker] : std::exchange(workers_, {})) truth_.End(id, by_order);
}

std::optional<WorkerId> NodeModel::Any() {
  if (workers_.empty()) return std::nullopt;
  auto one = workers_.begin();
  std::advance(one, world_.Below(workers_.size()));
  return one->second.ends ? std::nullopt : std::optional(one->first);
}

void NodeModel::KillOne(const Ending& ending) {
  if (const auto id = Any()) ExitSoon(*id, ending, {});
}

void NodeModel::HangOne() {
  if (const auto id = Any()) truth_.Hang(*id);
}

void NodeModel::KillShim() {
  if (!std::exchange(shim_, false)) return;
  truth_.ShimDied(name_);
  EndAll(false);
  TellLossSoon();
}

void NodeModel::MissLossAgain() {
  if (!shim_) TellLossSoon();
}

void NodeModel::TellLossSoon() {
  loss_untold_ = true;
  life_.After(world_.Delay({}, milliseconds(50)), [this] {
    if (loss_untold_) TellLoss();
  });
}

/// Behind that, what was ordered of it: whoever asked for an end has it.
void NodeModel::TellLoss() {
  loss_untold_ = false;
  const bool asked = stopping_ && stop_generation_ > stopped_;
  Tell(report::Lost{"killed by SIGKILL"});
  if (!asked || stop_generation_ <= stopped_) return;
  stopped_ = stop_generation_;
  Tell(report::Stopped{stopped_});
}

bool NodeModel::Runs(Rank rank) const {
  return std::ranges::any_of(workers_,
                             [&](const auto& entry) { return entry.second.rank == rank; });
}

void NodeModel::Abandon(bool host_too) {
  for (const auto& [id, worker] : std::exchange(workers_, {})) {
    if (host_too) {
      truth_.End(id, false);
    } else {
      world_.loop().After(world_.Delay({}, kOrphans),
                          [&truth = truth_, id] { truth.End(id, false); });
    }
  }
}

void NodeModel::PublishLater() {
  if (!program_.ours || std::exchange(publishing_, true)) return;
  life_.After(program_.publish, [this] {
    publishing_ = false;
    if (workers_.empty()) return;
    Publish();
    PublishLater();
  });
}

void NodeModel::Publish() {
  if (!program_.ours || workers_.empty()) return;
  report::Progress progress{.complete = true};
  for (auto& [id, worker] : workers_) {
    // The newest is enough for whoever counts steps, and half of the time went into the others.
    const auto steps = truth_.StepsOf(id, worker.told);
    if (!steps.empty()) progress.steps.push_back({worker.rank, steps.back()});
    const os::Pulse pulse = truth_.PulseOf(id);
    worker.told = std::max(worker.told, pulse.step);
    progress.places.push_back({worker.rank, pulse});
  }
  Tell(std::move(progress));
}

}  // namespace muster::agent::simulation

#include "agent/simulation/truth.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::agent::simulation {
namespace {

std::string NameOf(const std::string& agent, Rank rank, Generation generation) {
  return fmt::format("{}: rank {} of generation {}", agent, rank.value(), generation.value());
}

}  // namespace

void Truth::GivenTable(const std::string& agent, const order::Start& part) {
  const auto [found, is_new] = tables_.try_emplace(part.generation, Table{part, {}, {}});
  Table& table = found->second;
  const std::string what = fmt::format("generation {}", part.generation.value());
  if (is_new && part.generation != tables_.rbegin()->first) {
    world_.Violate(what + " was started behind a newer one");
  }
  if (!table.agents.insert(agent).second) {
    world_.Violate(fmt::format("{} was given {} twice", agent, what));
  }
  const order::Start& first = table.first;
  if (part.world != first.world || part.master_port != first.master_port ||
      part.restart_count != first.restart_count || part.via_zygote != first.via_zygote) {
    world_.Violate(fmt::format("{} has two tables: {} was given another one", what, agent));
  }
  std::vector<Rank> ranks = part.ranks;
  ranks.insert(ranks.end(), part.keepers.begin(), part.keepers.end());
  for (const Rank rank : ranks) {
    const auto [owner, free] = table.owners.emplace(rank, agent);
    if (!free || rank.value() >= part.world) {
      world_.Violate(fmt::format("rank {} of {} was given to {} and to {}", rank.value(), what,
                                 owner->second, agent));
    }
  }
  for (const auto& [id, worker] : workers_) {
    if (worker.agent != agent || worker.owner == nullptr) continue;
    if (std::ranges::find(part.keepers, worker.rank) != part.keepers.end()) continue;
    world_.Violate(fmt::format("{} starts, and {} lives", what,
                               NameOf(agent, worker.rank, worker.generation)));
  }
}

void Truth::Enter(WorkerId id, Worker& worker, Generation generation) {
  worker.generation = generation;
  worker.since = world_.Now();
  worker.quiesced = false;
  Crew& crew = crews_[generation];
  crew.world = tables_.at(generation).first.world;
  const auto [other, free] = crew.workers.emplace(worker.rank, id);
  if (!free && Lives(other->second)) {
    world_.Violate(NameOf(worker.agent, worker.rank, generation) + " exists twice");
  }
  crew.step = std::max(crew.step, worker.resumed);
  StepLater(generation);
}

WorkerId Truth::Begin(const std::string& agent, Rank rank, Generation spawned, WorkerOwner* owner) {
  const WorkerId id = next_++;
  Worker& worker = workers_[id];
  worker = {.agent = agent, .rank = rank, .spawned = spawned, .owner = owner, .resumed = durable_};
  for (Death& death : deaths_[rank]) {
    if (!death.next) death.next = spawned;
  }
  Enter(id, worker, spawned);
  return id;
}

void Truth::GoOn(WorkerId id, Generation generation) {
  Worker& worker = workers_.at(id);
  worker.resumed = std::max(worker.frozen, worker.resumed);
  Enter(id, worker, generation);
}

void Truth::End(WorkerId id, bool by_order) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  const Worker worker = found->second;
  workers_.erase(found);
  // Who hung is to blame, also when it is a stop that ends it.
  if (!by_order || worker.hangs) deaths_[worker.rank].push_back({worker.generation});
  Crew& crew = crews_[worker.generation];
  const bool done = crew.step >= program_.steps;
  if (by_order || done) return;
  crew.over = true;
  for (const auto& [rank, peer] : std::map(crew.workers)) {
    const auto other = workers_.find(peer);
    if (other == workers_.end() || other->second.owner == nullptr) continue;
    other->second.owner->PeerDied(peer);
  }
}

void Truth::Quiesce(WorkerId id) {
  Worker& worker = workers_.at(id);
  worker.quiesced = true;
  worker.frozen = std::max(worker.resumed, crews_[worker.generation].step);
  crews_[worker.generation].over = true;
}

void Truth::Hang(WorkerId id) {
  Worker& worker = workers_.at(id);
  worker.hangs = true;
  worker.since = world_.Now();
  worker.frozen = crews_[worker.generation].step;
}

void Truth::Orphan(const WorkerOwner* owner) {
  for (auto& [id, worker] : workers_) {
    if (worker.owner == owner) worker.owner = nullptr;
  }
}

std::string Truth::Living() const {
  std::string text;
  for (const auto& [id, worker] : workers_) {
    text += (text.empty() ? "" : ", ") + NameOf(worker.agent, worker.rank, worker.generation);
  }
  return text;
}

os::Pulse Truth::PulseOf(WorkerId id) const {
  const Worker& worker = workers_.at(id);
  const Crew& crew = crews_.at(worker.generation);
  const bool still = worker.hangs || worker.quiesced;
  const std::uint64_t step = still ? worker.frozen : std::max(crew.step, worker.resumed);
  return {.generation = worker.generation,
          .phase = worker.hangs ? os::Phase::kForward : os::Phase::kComm,
          .step = step,
          .durable_step = std::min(durable_, step),
          .phase_since = std::max(worker.since, still ? worker.since : crew.stepped)};
}

std::vector<os::StepRecord> Truth::StepsOf(WorkerId id, std::uint64_t after) const {
  const Worker& worker = workers_.at(id);
  const std::uint64_t last = PulseOf(id).step;
  std::vector<os::StepRecord> steps;
  for (std::uint64_t step = std::max(after, worker.resumed) + 1; step <= last; ++step) {
    steps.push_back({.sequence = step,
                     .step = step,
                     .begin_ns = (world_.Now() - program_.step).time_since_epoch().count(),
                     .total_us = static_cast<std::uint32_t>(program_.step.count() / 1000),
                     .generation = static_cast<std::uint32_t>(worker.generation.value())});
  }
  return steps;
}

bool Truth::Complete(const Crew& crew) const {
  if (crew.over || crew.world == 0 || crew.workers.size() != crew.world) return false;
  return std::ranges::all_of(crew.workers, [&](const auto& entry) {
    const auto worker = workers_.find(entry.second);
    return worker != workers_.end() && !worker->second.hangs && !worker->second.quiesced;
  });
}

bool Truth::Works(Generation generation) const {
  const auto crew = crews_.find(generation);
  return crew != crews_.end() && (Complete(crew->second) || crew->second.step >= program_.steps);
}

void Truth::StepLater(Generation generation) {
  Crew& crew = crews_[generation];
  if (crew.ticking || !Complete(crew)) return;
  crew.ticking = true;
  world_.loop().After(program_.step, [this, generation] { Tick(generation); });
}

void Truth::Tick(Generation generation) {
  Crew& crew = crews_[generation];
  crew.ticking = false;
  if (!Complete(crew)) return;
  ++crew.step;
  crew.stepped = world_.Now();
  if (program_.ours && crew.step % program_.durable_every == 0) {
    durable_ = std::max(durable_, crew.step);
  }
  if (crew.step < program_.steps) return StepLater(generation);
  for (const auto& [rank, id] : std::map(crew.workers)) {
    const auto worker = workers_.find(id);
    if (worker == workers_.end()) continue;
    if (worker->second.owner != nullptr) {
      worker->second.owner->Finished(id);
    } else {
      End(id, true);
    }
  }
}

void Truth::Disturbed(const std::string& agent) { disturbed_.insert(agent); }

bool Truth::Died(Rank rank, Generation in) const {
  const auto found = deaths_.find(rank);
  return found != deaths_.end() && std::ranges::any_of(found->second, [&](const Death& death) {
           const bool until_next = in >= death.in && (!death.next || in < *death.next);
           return until_next || death.in.value() + 1 == in.value();
         });
}

}  // namespace muster::agent::simulation

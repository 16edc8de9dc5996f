#include "agent/coordinator/stack_calls.h"

#include <algorithm>
#include <utility>

namespace muster::agent {
namespace {

// A kill waits for no more.
constexpr auto kTakeLimit = std::chrono::seconds(1);
constexpr auto kNameLimit = std::chrono::seconds(10);

}  // namespace

void StackCalls::Call(const std::vector<Rank>& ranks, OnTaken on_taken, OnNamed on_named) {
  on_named_.push_back(std::move(on_named));
  if (pending() && taken_) {
    on_taken();
    return;
  }
  on_taken_.push_back(std::move(on_taken));
  if (pending()) return;
  id_ = ++last_id_;
  taken_ = false;
  answers_.clear();
  for (const Rank rank : ranks) answers_[rank];
  taking_ = loop_.After(kTakeLimit, [this] { EndTaking(); });
  naming_ = loop_.After(kNameLimit, [this] { EndNaming(); });
  send_(id_);
  if (pending() && answers_.empty()) EndNaming();
}

void StackCalls::Taken(std::uint64_t id, const std::vector<Rank>& ranks) {
  if (id != id_ || taken_) return;
  for (const Rank rank : ranks) {
    if (const auto found = answers_.find(rank); found != answers_.end()) found->second.taken = true;
  }
  if (std::ranges::all_of(answers_, [](const auto& entry) { return entry.second.taken; })) {
    EndTaking();
  }
}

void StackCalls::Named(std::uint64_t id, const std::vector<Rank>& ranks, const std::string& json) {
  if (id == 0 || id != id_) return;
  Taken(id, ranks);
  auto processes = stacks::FromJson(json);
  if (!processes) processes = std::vector<stacks::Process>{};
  for (const Rank rank : ranks) {
    const auto found = answers_.find(rank);
    if (found == answers_.end()) continue;
    const auto process = std::ranges::find(*processes, rank.value(), &stacks::Process::rank);
    found->second.process =
        process != processes->end()
            ? *process
            : stacks::Process{.rank = rank.value(), .missing = "nothing was said of it"};
  }
  const auto has = [](const auto& entry) { return entry.second.process.has_value(); };
  if (id == id_ && std::ranges::all_of(answers_, has)) EndNaming();
}

void StackCalls::EndTaking() {
  if (taking_) loop_.Remove(*taking_);
  taking_.reset();
  taken_ = true;
  for (const OnTaken& tell : std::exchange(on_taken_, {})) tell();
}

void StackCalls::EndNaming() {
  if (!taken_) EndTaking();
  if (naming_) loop_.Remove(*naming_);
  naming_.reset();
  std::vector<stacks::Process> processes;
  for (auto& [rank, answer] : answers_) {
    processes.push_back(answer.process.value_or(
        stacks::Process{.rank = rank.value(), .missing = "its node did not answer in time"}));
  }
  id_ = 0;
  for (const OnNamed& tell : std::exchange(on_named_, {})) tell(processes);
}

}  // namespace muster::agent

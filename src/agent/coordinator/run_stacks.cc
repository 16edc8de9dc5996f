#include <fmt/format.h>

#include <algorithm>

#include "agent/coordinator/run_loop.h"
#include "agent/stacks/clusters.h"

namespace muster::agent {
namespace {

/// The one rank, and where it stands; without one the smallest group of ranks.
std::string OutlierOf(const std::vector<stacks::Process>& processes, std::optional<Rank> rank) {
  const auto clusters = stacks::ClustersOf(processes);
  if (clusters.empty()) return "no rank runs";
  for (const stacks::Process& process : processes) {
    if (!rank || process.rank != rank->value()) continue;
    return fmt::format("rank {} stands in {}", process.rank, stacks::PlaceOf(process));
  }
  const stacks::Cluster& first = clusters.front();
  return fmt::format("rank{} {} {} in {}", first.ranks.size() == 1 ? "" : "s",
                     stacks::RankList(first.ranks), first.ranks.size() == 1 ? "stands" : "stand",
                     stacks::PlaceOf(*first.example));
}

/// Where the others are, in one clause.
std::string OthersOf(const std::vector<stacks::Process>& processes, std::optional<Rank> rank) {
  std::vector<stacks::Process> others = processes;
  if (rank) std::erase_if(others, [&](const auto& other) { return other.rank == rank->value(); });
  auto clusters = stacks::ClustersOf(others);
  if (!rank && !clusters.empty()) clusters.erase(clusters.begin());
  if (clusters.empty()) return "";
  const stacks::Cluster& most = clusters.back();
  return fmt::format("; rank{} {} in {}", most.ranks.size() == 1 ? "" : "s",
                     stacks::RankList(most.ranks), stacks::PlaceOf(*most.example));
}

}  // namespace

/// What other terminals ask.
void RunLoop::ListenForVerbs() {
  auto control = ControlSocket::Listen(
      *loop_, folder_.path(), [this](const std::string& verb, ControlSocket::Reply reply) {
        if (verb != "dump") {
          return reply(Error(Code::kInvalid, "this muster run knows no such request: " + verb));
        }
        TakeStacks([] {},
                   [reply = std::move(reply)](const auto& processes) {
                     std::string json = stacks::ToJson(processes);
                     json.pop_back();  // its newline
                     reply(std::move(json));
                   });
      });
  if (control) {
    control_ = std::move(*control);
  } else {
    events_.Add("no_control", {{"why", control.error().ToString()}});
  }
}

std::vector<Rank> RunLoop::RunningRanks() const {
  std::vector<Rank> ranks;
  for (std::uint32_t i = 0; i < state_.ranks.size(); ++i) {
    if (state_.ranks[i].state == RankState::kRunning) ranks.push_back(Rank(i));
  }
  return ranks;
}

void RunLoop::TakeStacks(StackCalls::OnTaken on_taken, StackCalls::OnNamed on_named) {
  stack_calls_->Call(RunningRanks(), std::move(on_taken),
                     [this, on_named = std::move(on_named)](const auto& processes) {
                       on_named(processes);
                       if (ends_behind_stacks_) loop_->Post([this] { EndNode(); });
                     });
}

/// The kill waits until the stacks of all are copied, not until they have names.
void RunLoop::StacksBeforeKill(const Hang& hang) {
  const Generation generation = state_.generation;
  const Generation spawned = state_.ranks[hang.rank.value()].spawned;
  const bool kills = options_.on_hang == OnHang::kRestart;
  if (kills) stacks_[generation] = {};
  TakeStacks(
      [this, hang, spawned, kills] {
        if (kills) KillHanging(hang, spawned);
      },
      [this, generation, rank = hang.rank](const auto& processes) {
        NoteStacks(generation, rank, processes);
      });
}

void RunLoop::KillHanging(const Hang& hang, Generation spawned) {
  const RankStatus& status = state_.ranks[hang.rank.value()];
  if (status.spawned != spawned || status.state != RankState::kRunning) return;
  KillRank(hang.rank, {.hang = hang.what});
}

void RunLoop::NoteStacks(Generation generation, std::optional<Rank> rank,
                         const std::vector<stacks::Process>& processes) {
  const std::string file = KeepStacks(processes);
  if (const auto note = stacks_.find(generation); note != stacks_.end() && note->second.due) {
    note->second = {.due = false, .file = file};
    for (const stacks::Cluster& cluster : stacks::ClustersOf(processes)) {
      note->second.groups.push_back({cluster.ranks, stacks::PlaceOf(*cluster.example)});
    }
  }
  events_.Add("stacks", {{"gen", generation.value()}, {"file", file}});
  console_->Say(
      fmt::format("muster: {}{}{}", OutlierOf(processes, rank), OthersOf(processes, rank),
                  file.empty() ? "" : fmt::format("; stacks in {}", ShortPath(folder_.At(file)))));
  WriteFaults(false);
}

/// The name of the file in the run folder; "": it could not be written, which the console tells.
std::string RunLoop::KeepStacks(const std::vector<stacks::Process>& processes) {
  const std::string name = fmt::format("stacks-{}.json", ++stack_files_);
  const Status written = folder_.Write(name, stacks::ToJson(processes), 0600);
  if (written) return name;
  console_->Say("muster: " + written.error().ToString());
  return "";
}

}  // namespace muster::agent

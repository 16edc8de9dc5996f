#include <poll.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "agent/node/node_runner.h"
#include "os/wait_fd.h"

namespace muster::agent {
namespace {

// The shim never blocks, and has at most a packet for each worker to say.
constexpr auto kShimAnswers = std::chrono::seconds(5);

std::uint64_t SizeOf(const std::string& path) {
  std::error_code absent;
  const auto size = std::filesystem::file_size(path, absent);
  return absent ? 0 : size;
}

bool Has(const std::vector<shim::Exited>& ends, Rank rank) {
  return std::ranges::any_of(ends, [&](const auto& end) { return Rank(end.rank) == rank; });
}

}  // namespace

Status NodeRunner::ResumeNode(const NodePlace& place) {
  ranks_.first = place.first;
  generation_ = place.generation;
  use_zygote_ = use_zygote_ && place.use_zygote;
  generation_begin_ = options_.clock->Now();
  for (std::size_t i = 0; i < std::min(workers_.size(), place.spawned.size()); ++i) {
    workers_[i].spawned = place.spawned[i];
  }
  if (auto cgroup = kept().Take(kCgroupName); !cgroup.empty()) cgroup_ = FolderOf(cgroup[0]);
  std::vector<Fd> shim = kept().Take(kShimName);
  const bool had_one = shim.size() == 2;
  if (had_one) shim_.emplace(ShimClient::Adopt(std::move(shim[0]), std::move(shim[1])));
  const bool lost = had_one && !ResumeShim();
  MUSTER_TRY(ResumeWorkers(place));
  PublishLater();
  if (lost) {
    stop_unanswered_ = place.stops;
    loop_.Post([this] {
      if (shim_ && !shim_watch_) LoseShim();  // unless an order met its loss before
    });
    return Ok();
  }
  loop_.Post([this, place] { TellMissed(place); });
  if (!had_one) {
    Sweep();  // of one whose loss was told, something may be left
    return StartShim();
  }
  shim_watch_ =
      MUSTER_TRY(loop_.Watch(shim_->fd(), EPOLLIN, [this](std::uint32_t) { ReadShim(); }));
  EnsureZygote();
  return Ok();
}

NodePlace NodeRunner::place() const {
  NodePlace place{.generation = generation_,
                  .first = ranks_.first,
                  .stops = stop_unanswered_,
                  .use_zygote = use_zygote_};
  for (const Worker& worker : workers_) {
    place.spawned.push_back(worker.spawned);
    place.runs.push_back(worker.pid != 0 ? 1 : 0);
  }
  if (pages_) place.records = pages_->sequences();
  return place;
}

Status NodeRunner::ResumeShim() {
  const std::uint64_t request = kept().past().count;
  MUSTER_TRY(shim_->Resync(request));
  const Instant deadline = options_.clock->Now() + kShimAnswers;
  for (;;) {
    const auto message = shim_->Receive();
    if (!message && message.error().code() == Code::kInvalid) continue;
    if (!message) return message.error();
    const auto* synced = *message ? std::get_if<shim::Synced>(&**message) : nullptr;
    if (synced != nullptr && synced->request == request) return Ok();
    if (*message) {
      TakeNote(**message);
    } else if (!MUSTER_TRY(os::WaitFd(shim_->fd(), POLLIN, deadline - options_.clock->Now()))) {
      return Error(Code::kDeadline, "muster-shim does not answer");
    }
  }
}

/// Of what the shim said to the process before, and may say once more.
void NodeRunner::TakeNote(const ShimMessage& message) {
  const auto newest = [&](const auto& said) {
    const Rank rank(said.rank);
    return ranks_.Has(rank) && At(rank).spawned == Generation(said.generation);
  };
  if (const auto* hello = std::get_if<shim::Hello>(&message)) {
    TakeCgroup(*hello);
  } else if (const auto* zygote = std::get_if<shim::Zygote>(&message)) {
    zygote_alive_ = zygote->alive != 0;
    zygote_ready_ = zygote_alive_ && zygote->ready != 0;
    zygote_was_ready_ = zygote_was_ready_ || zygote_ready_;
    zygote_pid_ = zygote->pid;
  } else if (const auto* started = std::get_if<shim::Started>(&message)) {
    if (newest(*started) && started->error == 0) At(Rank(started->rank)).pid = started->pid;
  } else if (const auto* exited = std::get_if<shim::Exited>(&message)) {
    if (!newest(*exited)) return;
    At(Rank(exited->rank)).pid = 0;
    if (!Has(missed_, Rank(exited->rank))) missed_.push_back(*exited);
  }
}

Status NodeRunner::ResumeWorkers(const NodePlace& place) {
  std::vector<Fd> pages;
  for (std::uint32_t i = 0; i < ranks_.count; ++i) {
    for (Fd& fd : kept().Take(PageName(ranks_.At(i)))) pages.push_back(std::move(fd));
  }
  // Without all of them no rank was ever started.
  if (pages.size() != ranks_.count) return Ok();
  std::vector<std::uint64_t> records = place.records;
  records.resize(ranks_.count);
  pages_.emplace(MUSTER_TRY(HeartbeatPages::Adopt(ranks_, std::move(pages), std::move(records))));
  OpenLinks();
  seat_taken_over_ = true;
  if (auto arena = kept().Take(kArenaName); !arena.empty()) launcher_->Adopt(std::move(arena[0]));
  for (std::uint32_t i = 0; i < ranks_.count; ++i) {
    MUSTER_TRY(ResumeLogs(ranks_.At(i), kept().Take(RankName(ranks_.At(i)))));
  }
  if (!rules_) return Ok();
  rules_->Resume(generation_, SpawnedOfJob());
  for (std::uint32_t i = 0; i < ranks_.count; ++i) {
    if (workers_[i].pid == 0) rules_->Finish(ranks_.At(i));
  }
  return Ok();
}

/// The descriptors are those of RankName: stdout, stderr and, of some, the link.
Status NodeRunner::ResumeLogs(Rank rank, std::vector<Fd> fds) {
  if (fds.size() < 2) return Ok();
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    const LogId id{rank, At(rank).spawned, stream};
    const std::string path = LogKeeper::PathOf(options_.folder + "/logs", id) + ".log";
    MUSTER_TRY(logs_->Add(id, std::move(fds[stream == Stream::kOut ? 0 : 1]), SizeOf(path)));
  }
  return fds.size() > 2 ? links_->Adopt(rank, std::move(fds[2])) : Ok();
}

/// Who ended while nobody listened; it may have been told before.
void NodeRunner::TellMissed(const NodePlace& place) {
  // The answer may have been read.
  if (place.stops) Do(order::Stop{*place.stops, SIGKILL, {}});
  const std::vector<shim::Exited> missed = std::exchange(missed_, {});
  for (const shim::Exited& exited : missed) Handle(exited);
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    const Rank rank = ranks_.At(i);
    if (Has(missed, rank) || workers_[i].pid != 0 || i >= place.runs.size() || place.runs[i] == 0)
      continue;
    // That it is gone is sure; how it went nobody knows any more.
    Tell(report::Exited{.rank = rank,
                        .spawned = workers_[i].spawned,
                        .ending = {.signal = SIGKILL, .time = options_.clock->Now()}});
  }
}

}  // namespace muster::agent

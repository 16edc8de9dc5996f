#pragma once
// The host's ends of the recovery links (os/recovery_link.h) of all ranks: which workers can
// outlive another one's death, where they stand, and what they go on with. Owner: the run loop.

#include <functional>
#include <optional>
#include <vector>

#include "agent/launch/rank_range.h"
#include "os/event_loop.h"
#include "os/recovery_link.h"

namespace muster::agent {

class RankLinks {
 public:
  /// What a worker said of itself; on the loop's thread.
  using OnMessage = std::function<void(Rank, const os::RecoveryHost::Message&)>;

  /// The loop outlives it.
  RankLinks(os::EventLoop& loop, RankRange ranks, OnMessage on_message)
      : loop_(&loop), ranks_(ranks), links_(ranks.count), on_message_(std::move(on_message)) {}
  RankLinks(const RankLinks&) = delete;
  RankLinks& operator=(const RankLinks&) = delete;
  ~RankLinks() { CloseAll(); }

  /// A link for a new worker of `rank`, in the place of the last one; the value is the worker's
  /// end.
  Result<Fd> Open(Rank rank);
  /// A link that another process of ours opened for a worker of `rank`.
  Status Adopt(Rank rank, Fd host);
  /// Our end of it; -1 without one.
  int fd(Rank rank) const {
    const auto& link = links_[ranks_.IndexOf(rank)];
    return link ? link->host.fd() : -1;
  }
  /// Tells a worker that waits with what to go on. One that is dying hears nothing: its death is
  /// seen elsewhere.
  void Commit(Rank rank, Generation generation, int arena);
  /// Whoever waits is not wanted any more.
  void CloseAll();

 private:
  struct Link {
    os::RecoveryHost host;
    os::WatchId watch;
  };
  Status Hold(Rank rank, os::RecoveryHost host);
  void Close(Rank rank);
  void Read(Rank rank);

  std::optional<Link>& At(Rank rank) { return links_[ranks_.IndexOf(rank)]; }

  os::EventLoop* loop_;
  RankRange ranks_;
  std::vector<std::optional<Link>> links_;
  OnMessage on_message_;
};

}  // namespace muster::agent

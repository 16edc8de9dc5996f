#include "agent/launch/rank_links.h"

#include <sys/epoll.h>

namespace muster::agent {

Result<Fd> RankLinks::Open(Rank rank) {
  auto [host, worker] = MUSTER_TRY(os::RecoveryHost::Create());
  MUSTER_TRY(Hold(rank, std::move(host)));
  return std::move(worker);
}

Status RankLinks::Adopt(Rank rank, Fd host) {
  return Hold(rank, os::RecoveryHost::Adopt(std::move(host)));
}

Status RankLinks::Hold(Rank rank, os::RecoveryHost host) {
  Close(rank);
  const os::WatchId watch =
      MUSTER_TRY(loop_->Watch(host.fd(), EPOLLIN, [this, rank](std::uint32_t) { Read(rank); }));
  At(rank).emplace(Link{std::move(host), watch});
  return Ok();
}

void RankLinks::Commit(Rank rank, Generation generation, int arena) {
  std::optional<Link>& link = At(rank);
  if (link && !link->host.Commit(generation, arena)) Close(rank);
}

void RankLinks::CloseAll() {
  for (std::uint32_t i = 0; i < links_.size(); ++i) Close(ranks_.At(i));
}

void RankLinks::Close(Rank rank) {
  std::optional<Link>& link = At(rank);
  if (!link) return;
  loop_->Remove(link->watch);
  link.reset();
}

void RankLinks::Read(Rank rank) {
  while (At(rank)) {
    const auto message = At(rank)->host.Receive();
    if (!message && message.error().code() == Code::kInvalid) continue;
    if (!message) return Close(rank);
    if (!*message) return;
    on_message_(rank, **message);
  }
}

}  // namespace muster::agent

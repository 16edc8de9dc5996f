#include "agent/keep/kept.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/bytes.h"
#include "os/fd_packet.h"
#include "os/wait_fd.h"

namespace muster::agent {
namespace {

constexpr std::size_t kHalf = std::size_t{8} << 20;  // address space: pages exist once touched
// A supervisor that is stopped (Ctrl-Z) does not read: it is not waited for.
constexpr auto kPatience = std::chrono::milliseconds(100);

}  // namespace

/// Two places that take turns: a SIGKILL in the middle of one leaves the other.
struct SavedState::Page {
  std::atomic<std::uint64_t> turn;  ///< 0: nothing; else the newest is in turn % 2
  std::atomic<bool> closed;
  std::uint64_t size[2];
  char bytes[2][kHalf];
};

Result<SavedState> SavedState::Create() {
  const Bytes size{static_cast<std::int64_t>(sizeof(Page))};
  const Fd fd = MUSTER_TRY(os::CreateMemfd("muster-state", size));
  return SavedState(MUSTER_TRY(os::MapMemfd(fd.get(), size, os::MapAccess::kReadWrite)));
}

SavedState::Page& SavedState::page() const { return *reinterpret_cast<Page*>(mapping_.data()); }

bool SavedState::Save(std::string_view bytes) {
  const std::uint64_t turn = page().turn.load(std::memory_order_relaxed) + 1;
  if (bytes.empty() || bytes.size() > kHalf) {
    page().turn.store(0, std::memory_order_release);
    return false;
  }
  std::memcpy(page().bytes[turn % 2], bytes.data(), bytes.size());
  page().size[turn % 2] = bytes.size();
  page().turn.store(turn, std::memory_order_release);
  return true;
}

std::optional<std::string> SavedState::Load() const {
  const std::uint64_t turn = page().turn.load(std::memory_order_acquire);
  if (turn == 0) return std::nullopt;
  return std::string(page().bytes[turn % 2], page().size[turn % 2]);
}

void SavedState::Close() { page().closed.store(true, std::memory_order_release); }

bool SavedState::closed() const { return page().closed.load(std::memory_order_acquire); }

std::string FolderOf(const Fd& fd) {
  std::error_code gone;
  const auto path =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd.get()), gone).string();
  return gone || path.ends_with(" (deleted)") ? "" : path;
}

Kept::Kept(Fd socket, KeptFds fds, SavedState* state, PastLife past, Family family)
    : socket_(std::move(socket)),
      fds_(std::move(fds)),
      state_(state),
      past_(std::move(past)),
      family_(std::move(family)) {}

void Kept::Keep(const std::string& name, const std::vector<int>& fds) {
  if (!supervised() || state_->closed()) return;
  const os::OutPacket packet{name.data(), name.size(), fds.data(),
                             static_cast<std::uint32_t>(fds.size())};
  const Instant deadline = MonotonicClock::now() + kPatience;
  for (;;) {
    const int error = os::SendPacket(socket_.get(), packet, MSG_DONTWAIT);
    if (error == 0) return;
    const auto left = deadline - MonotonicClock::now();
    if ((error != EAGAIN && error != ETOOMANYREFS) || left <= std::chrono::nanoseconds(0)) break;
    if (error == ETOOMANYREFS) ::poll(nullptr, 0, 1);
    if (error == EAGAIN && !os::WaitFd(socket_.get(), POLLOUT, left)) break;
  }
  state_->Close();
}

std::vector<Fd> Kept::Take(const std::string& name) {
  const auto found = fds_.find(name);
  return found == fds_.end() ? std::vector<Fd>() : std::exchange(found->second, {});
}

void Kept::Save(std::string_view bytes) {
  if (supervised() && !state_->closed()) state_->Save(bytes);
}

}  // namespace muster::agent

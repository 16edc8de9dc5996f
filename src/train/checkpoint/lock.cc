#include "train/checkpoint/lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "train/checkpoint/folder.h"

namespace muster::checkpoint {
namespace {

constexpr std::chrono::milliseconds kPause{20};

bool IsUnsupported(int error) {
  return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == ENOTTY;
}

/// " (pid 12, run abc)", what the holder wrote, as far as it is plain text.
std::string HolderIn(int file) {
  std::array<char, 160> content{};
  const ssize_t size = ::pread(file, content.data(), content.size(), 0);
  std::string text;
  for (ssize_t i = 0; i < size; ++i) {
    const char c = content[static_cast<std::size_t>(i)];
    if (c == '\n') return " (" + text + ")";
    if (c < 0x20 || c > 0x7e) break;
    text += c;
  }
  return "";
}

/// Only for messages: what cannot be written is not.
void WriteHolder(int file, std::string_view run) {
  const std::string text = "pid " + std::to_string(::getpid()) + ", run " + std::string(run) + "\n";
  if (::ftruncate(file, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(file, text.data(), text.size(), 0);
}

}  // namespace

Result<FolderLock> FolderLock::Take(const std::string& folder, std::string_view run,
                                    std::chrono::milliseconds patience) {
  const std::string path = folder + "/" + std::string(kLockName);
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.valid()) return ErrnoError("open " + path, errno);
  for (std::chrono::milliseconds waited{0};; waited += kPause) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      WriteHolder(file.get(), run);
      return FolderLock(std::move(file));
    }
    if (IsUnsupported(errno)) return FolderLock(Fd());
    if (errno != EWOULDBLOCK && errno != EINTR) return ErrnoError("lock " + path, errno);
    if (waited >= patience) break;
    ::poll(nullptr, 0, static_cast<int>(kPause.count()));
  }
  return Error(
      Code::kConflict,
      "the checkpoint folder " + folder + " is in use by another run" + HolderIn(file.get()),
      "give each run a --checkpoint-dir of its own, or wait until that one has ended");
}

}  // namespace muster::checkpoint

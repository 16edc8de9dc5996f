#include "train/checkpoint/lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "base/host_name.h"
#include "os/process_sight.h"
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

/// Whether the file names another run of this machine that is still kept going.
bool IsKeptByAnotherRun(int file, std::string_view run) {
  std::array<char, 512> content{};
  if (::pread(file, content.data(), content.size() - 1, 0) <= 0) return false;
  std::istringstream lines(content.data());
  std::string holder;
  std::string word;
  std::string host;
  pid_t pid = 0;
  std::uint64_t start = 0;
  if (!std::getline(lines, holder) || !(lines >> word >> host >> pid >> start)) return false;
  if (word != "keeper" || holder.ends_with(" " + std::string(run)) || host != HostName()) {
    return false;
  }
  const auto keeper = os::SeeProcess(pid);
  return keeper && keeper->start_ticks == start;
}

/// What cannot be written is not.
void WriteHolder(int file, std::string_view run, int keeper) {
  std::string text = "pid " + std::to_string(::getpid()) + ", run " + std::string(run) + "\n";
  if (const auto sight = os::SeeProcess(keeper); keeper > 1 && sight) {
    text += "keeper " + HostName() + " " + std::to_string(keeper) + " " +
            std::to_string(sight->start_ticks) + "\n";
  }
  if (::ftruncate(file, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(file, text.data(), text.size(), 0);
}

}  // namespace

Result<FolderLock> FolderLock::Take(const std::string& folder, std::string_view run,
                                    std::chrono::milliseconds patience, int keeper) {
  const std::string path = folder + "/" + std::string(kLockName);
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.valid()) return ErrnoError("open " + path, errno);
  for (std::chrono::milliseconds waited{0};; waited += kPause) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      if (!IsKeptByAnotherRun(file.get(), run)) {
        WriteHolder(file.get(), run, keeper);
        return FolderLock(std::move(file));
      }
      // Its rank 0 is being replaced, and must find the lock free.
      ::flock(file.get(), LOCK_UN);
    } else if (IsUnsupported(errno)) {
      return FolderLock(Fd());
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      return ErrnoError("lock " + path, errno);
    }
    if (waited >= patience) break;
    ::poll(nullptr, 0, static_cast<int>(kPause.count()));
  }
  return Error(
      Code::kConflict,
      "the checkpoint folder " + folder + " is in use by another run" + HolderIn(file.get()),
      "give each run a --checkpoint-dir of its own, or wait until that one has ended");
}

}  // namespace muster::checkpoint

#include "train/checkpoint/lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>

#include "base/file_system.h"
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

/// When a process began, in ticks since boot, which tells it from a later one with its number; ""
/// when there is none.
std::string StartOf(std::string_view pid) {
  const auto stat = PosixFiles().ReadAll("/proc/" + std::string(pid) + "/stat", 4_KiB);
  if (!stat) return "";
  std::istringstream fields(stat->substr(std::min(stat->rfind(')') + 1, stat->size())));
  std::string field;
  constexpr int kStartTime = 20;  // the 22nd of all
  for (int i = 0; i < kStartTime; ++i) fields >> field;
  return field;
}

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Whether the file names another run of this machine that is still kept going.
bool IsKeptByAnotherRun(int file, std::string_view run) {
  std::array<char, 512> content{};
  if (::pread(file, content.data(), content.size() - 1, 0) <= 0) return false;
  std::istringstream lines(content.data());
  std::string holder;
  std::string word;
  std::string host;
  std::string pid;
  std::string start;
  if (!std::getline(lines, holder) || !(lines >> word >> host >> pid >> start)) return false;
  if (word != "keeper" || holder.ends_with(" " + std::string(run)) || host != HostName()) {
    return false;
  }
  return pid.find_first_not_of("0123456789") == std::string::npos && StartOf(pid) == start;
}

/// What cannot be written is not.
void WriteHolder(int file, std::string_view run, int keeper) {
  std::string text = "pid " + std::to_string(::getpid()) + ", run " + std::string(run) + "\n";
  const std::string pid = std::to_string(keeper);
  if (keeper > 1) text += "keeper " + HostName() + " " + pid + " " + StartOf(pid) + "\n";
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

#include "profile/report/run_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>

#include "base/absent.h"

namespace muster::profile {
namespace {

constexpr int kBase = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
constexpr std::size_t kChunk = 256 << 10;

/// Opens `path` below `folder`, one component at a time, so that no link on the way is followed.
Result<Fd> OpenBeneath(int folder, std::string_view path) {
  Fd at;
  int from = folder;
  std::string_view rest = path;
  while (true) {
    const auto slash = rest.find('/');
    const std::string name(rest.substr(0, slash));
    if (name.empty() || name == "." || name == "..") {
      return Error(Code::kInvalid, fmt::format("'{}' leads out of the run folder", path));
    }
    const bool last = slash == std::string_view::npos;
    Fd next(::openat(from, name.c_str(), kBase | (last ? 0 : O_DIRECTORY)));
    if (!next.valid()) return ErrnoError(fmt::format("open {}", path), errno);
    if (last) return next;
    at = std::move(next);
    from = at.get();
    rest.remove_prefix(slash + 1);
  }
}

Result<std::size_t> ReadSome(int fd, char* out, std::size_t size, std::string_view path) {
  while (true) {
    const auto n = ::read(fd, out, size);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR) return ErrnoError(fmt::format("read {}", path), errno);
  }
}

Result<std::string> ReadUpTo(int fd, std::size_t most, std::string_view path) {
  std::string text;
  while (text.size() < most) {
    const std::size_t had = text.size();
    text.resize(std::min(most, had + kChunk));
    const std::size_t n = MUSTER_TRY(ReadSome(fd, text.data() + had, text.size() - had, path));
    text.resize(had + n);
    if (n == 0) break;
  }
  return text;
}

/// Cuts a stream of chunks into lines.
class LineCutter {
 public:
  LineCutter(const std::function<void(std::string_view)>& use, LinesRead& read)
      : use_(use), read_(read) {}

  void Feed(std::string_view chunk) {
    while (!chunk.empty()) {
      const auto end = chunk.find('\n');
      Append(chunk.substr(0, end));
      if (end == std::string_view::npos) return;
      Finish();
      chunk.remove_prefix(end + 1);
    }
  }
  bool inside_line() const { return skipping_ || !line_.empty(); }

 private:
  void Append(std::string_view part) {
    if (skipping_) return;
    skipping_ = line_.size() + part.size() > kMaxLineBytes;
    if (!skipping_) line_ += part;
  }
  void Finish() {
    ++read_.lines;
    if (skipping_) {
      ++read_.too_long;
    } else {
      use_(line_);
    }
    skipping_ = false;
    line_.clear();
  }

  const std::function<void(std::string_view)>& use_;
  LinesRead& read_;
  std::string line_;
  bool skipping_ = false;
};

}  // namespace

Result<RunFiles> RunFiles::Open(const std::string& folder) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (fd.valid()) return RunFiles(folder, std::move(fd));
  if (errno == ENOTDIR) {
    return Error(Code::kInvalid, fmt::format("{} is not a folder", folder),
                 "give the run folder that 'muster run' named");
  }
  if (errno == ENOENT) {
    return Absent("run folder", folder,
                  "give the folder that 'muster run' named when it began; ls runs lists them");
  }
  return ErrnoError(fmt::format("open the run folder {}", folder), errno);
}

Result<Fd> RunFiles::OpenFile(std::string_view path) const {
  Fd fd = MUSTER_TRY(OfContent(OpenBeneath(folder_.get(), path), Code::kDataLoss));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return ErrnoError(fmt::format("stat {}", path), errno);
  if (!S_ISREG(status.st_mode)) {
    return Error(Code::kDataLoss, fmt::format("{} is not a regular file", path));
  }
  return fd;
}

Result<std::string> RunFiles::ReadWhole(std::string_view path, Bytes limit) const {
  const Fd fd = MUSTER_TRY(OpenFile(path));
  const auto most = static_cast<std::size_t>(limit.count);
  std::string text = MUSTER_TRY(ReadUpTo(fd.get(), most + 1, path));
  if (text.size() <= most) return text;
  return Error(Code::kPrecondition, fmt::format("{} is larger than {}", path, FormatBytes(limit)));
}

Result<std::string> RunFiles::ReadTail(std::string_view path, Bytes most) const {
  const Fd fd = MUSTER_TRY(OpenFile(path));
  const auto end = ::lseek(fd.get(), 0, SEEK_END);
  if (end < 0 || ::lseek(fd.get(), std::max<std::int64_t>(0, end - most.count), SEEK_SET) < 0) {
    return ErrnoError(fmt::format("seek in {}", path), errno);
  }
  return ReadUpTo(fd.get(), static_cast<std::size_t>(most.count), path);
}

Result<std::string> RunFiles::ReadAt(std::string_view path, std::uint64_t offset,
                                     Bytes most) const {
  const Fd fd = MUSTER_TRY(OpenFile(path));
  // lseek takes no more, and no file is so large.
  constexpr std::uint64_t kFarthest = std::uint64_t{1} << 62;
  if (offset > kFarthest) return std::string();
  if (::lseek(fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
    return ErrnoError(fmt::format("seek in {}", path), errno);
  }
  return ReadUpTo(fd.get(), static_cast<std::size_t>(most.count), path);
}

Result<FileSight> RunFiles::Look(std::string_view path) const {
  const Fd fd = MUSTER_TRY(OpenFile(path));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return ErrnoError(fmt::format("stat {}", path), errno);
  return FileSight{.size = static_cast<std::uint64_t>(status.st_size),
                   .written = WallTime(std::chrono::seconds(status.st_mtim.tv_sec) +
                                       std::chrono::nanoseconds(status.st_mtim.tv_nsec))};
}

Result<std::vector<std::string>> RunFiles::List(std::string_view path, std::size_t most) const {
  Fd fd = MUSTER_TRY(OfContent(OpenBeneath(folder_.get(), path), Code::kDataLoss));
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(fd.get()), &::closedir);
  if (!folder) return ErrnoError(fmt::format("list {}", path), errno);
  [[maybe_unused]] const int owned = fd.Release();
  std::vector<std::string> names;
  while (names.size() < most) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr && errno != 0) return ErrnoError(fmt::format("list {}", path), errno);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

Result<LinesRead> RunFiles::ForEachLine(std::string_view path, Bytes limit,
                                        const std::function<void(std::string_view)>& use) const {
  const Fd fd = MUSTER_TRY(OpenFile(path));
  LinesRead read;
  LineCutter cutter(use, read);
  std::string chunk(kChunk, '\0');
  std::int64_t total = 0;
  while (true) {
    const std::size_t n = MUSTER_TRY(ReadSome(fd.get(), chunk.data(), chunk.size(), path));
    if (n == 0) break;
    total += static_cast<std::int64_t>(n);
    if (total > limit.count) {
      read.cut = true;
      break;
    }
    cutter.Feed(std::string_view(chunk).substr(0, n));
  }
  read.torn = !read.cut && cutter.inside_line();
  return read;
}

bool RunFiles::LockHeld() const {
  const auto fd = OpenFile("lock");
  if (!fd) return false;
  if (::flock(fd->get(), LOCK_SH | LOCK_NB) == 0) {
    ::flock(fd->get(), LOCK_UN);
    return false;
  }
  return errno == EWOULDBLOCK;
}

}  // namespace muster::profile

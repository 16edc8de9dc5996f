#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "base/fd.h"
#include "base/file_system.h"
#include "base/remove_all.h"
#include "base/write_all.h"

namespace muster {
namespace {

Error Failed(std::string_view what, const std::string& path) {
  const int code = errno;
  return ErrnoError(std::string(what) + " " + path, code);
}

/// Repeats a system call that a signal interrupted.
template <typename Call>
auto Retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Status Write(ByteSpan data) override {
    if (failed_) return *failed_;
    const Written done = WriteAll(fd_.get(), data);
    written_ += done.bytes;
    if (done.error == 0) return Ok();
    errno = done.error;
    return Remember("write");
  }
  std::uint64_t written() const override { return written_; }
  Status Sync() override {
    if (failed_) return *failed_;
    if (Retry([&] { return ::fsync(fd_.get()); }) < 0) return Remember("fsync");
    return Ok();
  }
  Status Close() override {
    if (!fd_.valid()) return Ok();
    if (::close(fd_.Release()) < 0 && errno != EINTR) return Failed("close", path_);
    return Ok();
  }

 private:
  /// A second fsync would say yes although the first one lost pages.
  Error Remember(std::string_view what) {
    failed_ = Failed(what, path_);
    return *failed_;
  }

  Fd fd_;
  std::string path_;
  std::uint64_t written_ = 0;
  std::optional<Error> failed_;
};

/// Refuses a FIFO, a device or a folder that stands in the place of a file.
Status CheckRegular(const Fd& fd, const std::string& path, struct stat& info) {
  if (::fstat(fd.get(), &info) < 0) return Failed("stat", path);
  if (!S_ISREG(info.st_mode)) return Error(Code::kInvalid, path + " is not a regular file");
  return Ok();
}

/// Whether renameat2 does not know the flag on this file system.
bool IsUnsupported(int error) { return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP; }

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                               const CreateOptions& options) override {
    // O_NONBLOCK: a FIFO in the place of the file must not hang us. Regular files ignore it.
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    if (options.append) {
      flags |= O_APPEND;
    } else {
      flags |= options.replace ? O_TRUNC : O_EXCL;
    }
    Fd fd(Retry([&] { return ::open(path.c_str(), flags, options.mode); }));
    if (!fd.valid()) return Failed("create", path);
    struct stat info{};
    MUSTER_TRY(CheckRegular(fd, path, info));
    return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(std::move(fd), path));
  }

  Result<std::string> ReadAll(const std::string& path, Bytes limit) override {
    // O_NONBLOCK: a FIFO put in the place of a file must not hang us.
    Fd fd(Retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
    if (!fd.valid()) return Failed("open", path);
    struct stat info{};
    MUSTER_TRY(CheckRegular(fd, path, info));
    const Error too_large(Code::kInvalid, path + " is larger than " + FormatBytes(limit));
    if (info.st_size > limit.count) return too_large;
    const auto cap = static_cast<std::size_t>(limit.count);
    // One more byte than it says finds the end in the same read; files in /proc say 0.
    std::size_t want = std::max<std::size_t>(static_cast<std::size_t>(info.st_size), 4095) + 1;
    std::string content;
    for (;;) {
      const std::size_t have = content.size();
      content.resize(have + want);
      const auto n = Retry([&] { return ::read(fd.get(), content.data() + have, want); });
      if (n < 0) return Failed("read", path);
      content.resize(have + static_cast<std::size_t>(n));
      if (content.size() > cap) return too_large;
      if (n == 0) return content;
      want = 1 << 16;
    }
  }

  Status MakeDirectory(const std::string& path, unsigned mode) override {
    if (::mkdir(path.c_str(), mode) < 0) return Failed("create folder", path);
    return Ok();
  }
  Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) < 0) return Failed("rename " + from + " to", to);
    return Ok();
  }
  Status RenameNew(const std::string& from, const std::string& to) override {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
      return Ok();
    }
    // EINVAL also means "into itself", which the way round reports too.
    if (IsUnsupported(errno)) return FileSystem::RenameNew(from, to);
    if (errno == EEXIST) return Error(Code::kAlreadyExists, to + " exists already");
    return Failed("rename " + from + " to", to);
  }
  Status Exchange(const std::string& a, const std::string& b) override {
    if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return Ok();
    if (IsUnsupported(errno)) {
      return Error(Code::kPrecondition,
                   "the file system of " + b + " cannot exchange it with " + a + " in one step");
    }
    return Failed("exchange " + a + " with", b);
  }
  Status SyncDirectory(const std::string& path) override {
    Fd fd(Retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!fd.valid()) return Failed("open", path);
    // EINVAL: a network or FUSE file system that has no such thing and keeps names by itself.
    if (Retry([&] { return ::fsync(fd.get()); }) < 0 && errno != EINVAL) {
      return Failed("fsync", path);
    }
    return Ok();
  }
  Status RemoveAll(const std::string& path) override { return RemoveTree(path); }

  Result<std::vector<std::string>> List(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(path.c_str()), ::closedir);
    if (!stream) return Failed("list", path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      errno = 0;
    }
    if (errno != 0) return Failed("list", path);
    std::sort(names.begin(), names.end());
    return names;
  }
  bool Exists(const std::string& path) override {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0;
  }
};

}  // namespace

Status FileSystem::RenameNew(const std::string& from, const std::string& to) {
  if (Exists(to)) return Error(Code::kAlreadyExists, to + " exists already");
  return Rename(from, to);
}

FileSystem& PosixFiles() {
  static PosixFileSystem files;
  return files;
}

}  // namespace muster

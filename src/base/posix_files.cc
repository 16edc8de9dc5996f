#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/durable.h"
#include "base/fd.h"
#include "base/file_system.h"

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
    while (!data.empty()) {
      const auto n = Retry([&] { return ::write(fd_.get(), data.data(), data.size()); });
      if (n < 0) return Failed("write", path_);
      data = data.subspan(static_cast<std::size_t>(n));
    }
    return Ok();
  }
  Status Sync() override {
    if (Retry([&] { return ::fsync(fd_.get()); }) < 0) return Failed("fsync", path_);
    return Ok();
  }
  Status Close() override {
    if (!fd_.valid()) return Ok();
    if (::close(fd_.Release()) < 0 && errno != EINTR) return Failed("close", path_);
    return Ok();
  }

 private:
  Fd fd_;
  std::string path_;
};

/// Removes `name` below the open folder `parent`; never follows a link, so nothing outside can be
/// reached.
Status RemoveAt(int parent, const std::string& name, const std::string& shown) {
  if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return Ok();
  if (errno != EISDIR && errno != EPERM) return Failed("remove", shown);
  Fd folder(Retry([&] {
    return ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }));
  if (!folder.valid()) return Failed("open", shown);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(
      ::fdopendir(::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0)), ::closedir);
  if (!stream) return Failed("list", shown);
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string child = entry->d_name;
    if (child == "." || child == "..") continue;
    MUSTER_TRY(RemoveAt(folder.get(), child, shown + "/" + child));
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) < 0 && errno != ENOENT)
    return Failed("remove", shown);
  return Ok();
}

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                               const CreateOptions& options) override {
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    if (options.append) {
      flags |= O_APPEND;
    } else {
      flags |= options.replace ? O_TRUNC : O_EXCL;
    }
    Fd fd(Retry([&] { return ::open(path.c_str(), flags, options.mode); }));
    if (!fd.valid()) return Failed("create", path);
    return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(std::move(fd), path));
  }

  Result<std::string> ReadAll(const std::string& path, Bytes limit) override {
    // O_NONBLOCK: a FIFO put in the place of a file must not hang us.
    Fd fd(Retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
    if (!fd.valid()) return Failed("open", path);
    struct stat info{};
    if (::fstat(fd.get(), &info) < 0) return Failed("stat", path);
    if (S_ISDIR(info.st_mode)) return ErrnoError("read " + path, EISDIR);
    std::string content;
    const auto cap = static_cast<std::size_t>(limit.count);
    std::size_t want =
        std::min(cap, static_cast<std::size_t>(info.st_size)) + 1;  // one more byte finds the end
    for (;;) {
      const std::size_t have = content.size();
      content.resize(have + want);
      const auto n = Retry([&] { return ::read(fd.get(), content.data() + have, want); });
      if (n < 0) return Failed("read", path);
      content.resize(have + static_cast<std::size_t>(n));
      if (content.size() > cap) {
        return Error(Code::kInvalid, path + " is larger than " + FormatBytes(limit));
      }
      if (n == 0) return content;
      want = std::min<std::size_t>(cap - content.size() + 1, 1 << 16);
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
  Status Exchange(const std::string& a, const std::string& b) override {
    if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) < 0)
      return Failed("exchange " + a + " with", b);
    return Ok();
  }
  Status SyncDirectory(const std::string& path) override {
    Fd fd(Retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!fd.valid()) return Failed("open", path);
    if (Retry([&] { return ::fsync(fd.get()); }) < 0) return Failed("fsync", path);
    return Ok();
  }
  Status RemoveAll(const std::string& path) override { return RemoveAt(AT_FDCWD, path, path); }

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

FileSystem& PosixFiles() {
  static PosixFileSystem files;
  return files;
}

}  // namespace muster

#include "base/remove_all.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "base/durable.h"
#include "base/fd.h"

namespace muster {
namespace {

constexpr int kMaxDepth = 32;

using Stream = std::unique_ptr<DIR, int (*)(DIR*)>;

/// Opens the folder `name` for listing; null and errno otherwise.
Stream OpenFolder(int parent, const std::string& name) {
  Fd folder(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  Stream stream(folder.valid() ? ::fdopendir(folder.get()) : nullptr, ::closedir);
  // The stream owns the descriptor from now on.
  if (stream != nullptr) [[maybe_unused]]
    const int owned = folder.Release();
  return stream;
}

/// Calls `visit(name)` for each entry until one fails.
template <typename Visit>
Status ForEachEntry(DIR* stream, const std::string& shown, Visit visit) {
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream);
    if (entry == nullptr && errno != 0) return ErrnoError("list " + shown, errno);
    if (entry == nullptr) return Ok();
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    MUSTER_TRY(visit(name));
  }
}

class TreeRemover {
 public:
  /// Removes everything in the folder that `stream` lists. What was moved up is seen in another
  /// pass.
  Status Empty(DIR* stream, const std::string& shown) {
    root_ = ::dirfd(stream);
    std::uint64_t moved = 0;
    do {
      moved = moved_;
      ::rewinddir(stream);
      MUSTER_TRY(ForEachEntry(stream, shown, [&](const std::string& name) {
        return Remove(root_, name, shown + "/" + name, 1);
      }));
    } while (moved_ != moved);
    return Ok();
  }

 private:
  Status Remove(int parent, const std::string& name, const std::string& shown, int depth) {
    if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return Ok();
    if (errno != EISDIR && errno != EPERM) return ErrnoError("remove " + shown, errno);
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return Ok();
    if (errno != ENOTEMPTY && errno != EEXIST) return ErrnoError("remove " + shown, errno);
    if (depth >= kMaxDepth) return MoveUp(parent, name, shown);
    const Stream stream = OpenFolder(parent, name);
    if (stream == nullptr) return ErrnoError("open " + shown, errno);
    const int folder = ::dirfd(stream.get());
    MUSTER_TRY(ForEachEntry(stream.get(), shown, [&](const std::string& child) {
      return Remove(folder, child, shown + "/" + child, depth + 1);
    }));
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) < 0 && errno != ENOENT) {
      return ErrnoError("remove " + shown, errno);
    }
    return Ok();
  }

  /// A name that exists already is of an earlier try that was interrupted: take the next one.
  Status MoveUp(int parent, const std::string& name, const std::string& shown) {
    for (;;) {
      const std::string target = fmt::format(".removing-{}", moved_++);
      if (::renameat2(parent, name.c_str(), root_, target.c_str(), RENAME_NOREPLACE) == 0) {
        return Ok();
      }
      if (errno != EEXIST) return ErrnoError("move " + shown + " up to remove it", errno);
    }
  }

  int root_ = -1;
  std::uint64_t moved_ = 0;
};

}  // namespace

Status RemoveTree(const std::string& path) {
  const std::string name = NameOf(path);
  if (name.empty() || name == "/" || name == "." || name == "..") {
    return Error(Code::kInvalid, "'" + path + "' is nothing to remove");
  }
  // A slash at the end would make the kernel follow a link.
  const std::string plain = path.substr(0, path.find_last_not_of('/') + 1);
  if (::unlink(plain.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return Ok();
  if (errno != EISDIR && errno != EPERM) return ErrnoError("remove " + path, errno);
  const Stream stream = OpenFolder(AT_FDCWD, plain);
  if (stream == nullptr && errno == ENOTDIR) return ErrnoError("remove " + path, EPERM);
  if (stream == nullptr) return ErrnoError("open " + path, errno);
  MUSTER_TRY(TreeRemover().Empty(stream.get(), plain));
  if (::rmdir(plain.c_str()) < 0 && errno != ENOENT) return ErrnoError("remove " + path, errno);
  return Ok();
}

}  // namespace muster

#include "base/readable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace muster {

Result<ReadableFile> ReadableFile::Open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoError("open " + path, errno);
  struct stat info{};
  if (::fstat(fd.get(), &info) < 0) return ErrnoError("stat " + path, errno);
  if (!S_ISREG(info.st_mode)) return Error(Code::kInvalid, path + " is not a regular file");
  return ReadableFile(std::move(fd), path, static_cast<std::uint64_t>(info.st_size));
}

Status ReadableFile::ReadAt(std::uint64_t offset, MutableByteSpan out) const {
  while (!out.empty()) {
    const auto n = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError("read " + path_, errno);
    if (n == 0)
      return Error(Code::kDataLoss, path_ + " ends at byte " + std::to_string(offset) + ", " +
                                        std::to_string(out.size()) + " bytes too early");
    offset += static_cast<std::uint64_t>(n);
    out = out.subspan(static_cast<std::size_t>(n));
  }
  return Ok();
}

}  // namespace muster

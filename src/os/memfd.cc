#include "os/memfd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace muster::os {
namespace {

#ifndef MFD_NOEXEC_SEAL
constexpr unsigned kNoExec = 8;  // Linux 6.3; Debian 12's headers are older than many kernels.
#else
constexpr unsigned kNoExec = MFD_NOEXEC_SEAL;
#endif
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

int OpenMemfd(const char* name) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = ::memfd_create(name, kFlags | kNoExec);
  if (fd >= 0 || errno != EINVAL) return fd;
  return ::memfd_create(name, kFlags);
}

}  // namespace

Result<Fd> CreateMemfd(const char* name, Bytes size) {
  if (size.count <= 0) return Error(Code::kInvalid, fmt::format("a memfd of {} bytes", size.count));
  Fd fd(OpenMemfd(name));
  if (!fd.valid()) return ErrnoError("memfd_create", errno);
  if (::ftruncate(fd.get(), size.count) < 0) return ErrnoError("size a memfd", errno);
  if (::fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) < 0) {
    return ErrnoError("seal a memfd", errno);
  }
  return fd;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Result<Mapping> MapMemfd(int fd, Bytes size, MapAccess access) {
  struct stat info{};
  if (::fstat(fd, &info) < 0) return ErrnoError(fmt::format("stat descriptor {}", fd), errno);
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return Error(Code::kInvalid, fmt::format("descriptor {} is not a sealed memfd", fd));
  }
  if (info.st_size != size.count || size.count <= 0) {
    return Error(Code::kInvalid,
                 fmt::format("the memfd at descriptor {} has {} bytes instead of {}", fd,
                             info.st_size, size.count));
  }
  const int protection = access == MapAccess::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  const auto bytes = static_cast<std::size_t>(size.count);
  void* data = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return ErrnoError(fmt::format("map descriptor {}", fd), errno);
  return Mapping(static_cast<std::byte*>(data), bytes);
}

}  // namespace muster::os

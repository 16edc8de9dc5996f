#include "data/layout/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fd.h"

namespace muster::data {
namespace {

/// How far from the end a byte is looked for that shows whether the end is still there.
constexpr std::size_t kTail = 64;

constexpr std::string_view kHint =
    "nothing that was read of it since was used; let nothing write into a set that is read, then "
    "look at it with 'muster data verify'";

/// Nobody typed the name of a set's file: one that is gone is damage, and so is what cannot be one,
/// such as a socket.
Error Failed(const std::string& what, int why) {
  if (why == ENOENT) return Error(Code::kDataLoss, what.substr(what.find(' ') + 1) + " is gone");
  return OfContent(Status(ErrnoError(what, why)), Code::kDataLoss).error();
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return Failed("open " + path, errno);
  struct stat info{};
  if (::fstat(fd.get(), &info) < 0) return Failed("stat " + path, errno);
  if (!S_ISREG(info.st_mode)) return Error(Code::kDataLoss, path + " is not a regular file");
  MappedFile file;
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return file;
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return Failed("map " + path, errno);
  file.path_ = path;
  file.device_ = info.st_dev;
  file.inode_ = info.st_ino;
  file.bytes_ = {static_cast<const std::byte*>(at), size};
  file.guard_ = os::MapGuard(at, size);
  for (std::size_t back = 1; back <= std::min(size, kTail) && file.mark_ == nullptr; ++back) {
    const volatile std::byte* byte = file.bytes_.data() + size - back;
    file.marked_ = *byte;
    if (file.marked_ != std::byte{0}) file.mark_ = byte;
  }
  MUSTER_TRY(file.Whole());
  return file;
}

Status MappedFile::Whole() const {
  const bool end_is_there = mark_ == nullptr || *mark_ == marked_;
  if (end_is_there && !guard_.lost()) return Ok();
  return WhatBecameOfIt();
}

Error MappedFile::WhatBecameOfIt() const {
  const auto told = [this](std::string_view what) {
    return Error(Code::kDataLoss, fmt::format("{} {}", path_, what), std::string(kHint));
  };
  const Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat now{};
  if (!fd.valid() || ::fstat(fd.get(), &now) < 0 || now.st_dev != device_ || now.st_ino != inode_) {
    return told(fmt::format("was cut and removed or replaced while it was read: had {} bytes",
                            bytes_.size()));
  }
  if (static_cast<std::size_t>(now.st_size) < bytes_.size()) {
    return told(fmt::format("became shorter while it was read: was {} bytes, is {}", bytes_.size(),
                            now.st_size));
  }
  const std::size_t lost_at = guard_.lost_at().value_or(0);
  std::byte byte{};
  if (::pread(fd.get(), &byte, 1, static_cast<off_t>(lost_at)) < 0) {
    const int why = errno;
    return Error(Failed(fmt::format("{} cannot be read at byte {}", path_, lost_at), why))
        .Hint("the disk that holds it may be failing: look at the kernel's log (dmesg)");
  }
  return told(fmt::format("was written to while it was read: has {} bytes again", now.st_size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  std::swap(bytes_, other.bytes_);
  std::swap(guard_, other.guard_);
  std::swap(mark_, other.mark_);
  std::swap(marked_, other.marked_);
  return *this;
}

MappedFile::~MappedFile() {
  guard_ = {};
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace muster::data

#include "data/layout/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/fd.h"

namespace muster::data {
namespace {

/// Nobody typed the name of a set's file: what cannot be one, such as a socket, is damage.
Error Failed(const std::string& what, int why) {
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
  file.bytes_ = {static_cast<const std::byte*>(at), size};
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, ByteSpan{})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace muster::data

#pragma once
// Memory that processes share by passing a descriptor: no name anywhere, so nothing to clean up and
// nobody else to open it. The size is sealed at birth (F_SEAL_SHRINK | GROW | SEAL): whoever maps
// it can never get SIGBUS because another process truncated it. MapMemfd refuses what lacks the
// seals or has another size, so a descriptor from outside is safe to map. Values, any thread.

#include <cstddef>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace muster::os {

/// A zeroed, sealed memfd of `size` bytes, CLOEXEC. `name` shows up in /proc/PID/maps only.
Result<Fd> CreateMemfd(const char* name, Bytes size);

enum class MapAccess { kRead, kReadWrite };

/// A shared mapping; unmapped by the destructor.
class [[nodiscard]] Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  friend Result<Mapping> MapMemfd(int fd, Bytes size, MapAccess access);
  Mapping(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Maps all `size` bytes of a memfd. Invalid when `fd` is not a memfd of exactly that size whose
/// size is sealed. `fd` may be closed afterwards.
Result<Mapping> MapMemfd(int fd, Bytes size, MapAccess access);

}  // namespace muster::os

#pragma once
// Little-endian numbers in our own binary files. A Reader never goes past its end: once a read does
// not fit, ok() is false and every later read gives 0. Single-threaded values.

#include <concepts>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace muster::data {

template <std::unsigned_integral T>
void Put(std::vector<std::byte>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
  }
}
inline void PutBytes(std::vector<std::byte>& out, ByteSpan bytes) {
  for (const std::byte byte : bytes) out.push_back(byte);  // small; gcc 12 misjudges insert()
}

template <std::unsigned_integral T>
T LoadLittle(const std::byte* at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(at[i]) << (8 * i)));
  }
  return value;
}

class LittleReader {
 public:
  explicit LittleReader(ByteSpan bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  std::size_t left() const { return rest_.size(); }
  template <std::unsigned_integral T>
  T Take() {
    const ByteSpan bytes = TakeBytes(sizeof(T));
    return bytes.empty() ? T{0} : LoadLittle<T>(bytes.data());
  }
  ByteSpan TakeBytes(std::uint64_t count) {
    if (!ok_ || count > rest_.size()) {
      ok_ = false;
      return {};
    }
    const ByteSpan taken = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return taken;
  }

 private:
  ByteSpan rest_;
  bool ok_ = true;
};

}  // namespace muster::data

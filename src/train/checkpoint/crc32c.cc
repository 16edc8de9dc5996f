#include "train/checkpoint/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace muster::checkpoint {

std::uint32_t Crc32c(ByteSpan data, std::uint32_t before) {
  std::uint32_t sum = ~before;
  while (!data.empty()) {
    const std::size_t n = std::min<std::size_t>(data.size(), 1u << 30);  // the length is an int
    // isa-l takes a mutable pointer and does not write through it.
    auto* bytes = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(data.data()));
    sum = ::crc32_iscsi(bytes, static_cast<int>(n), sum);
    data = data.subspan(n);
  }
  return ~sum;
}

void BlockSums::Add(ByteSpan data) {
  while (!data.empty()) {
    const std::size_t n = std::min<std::size_t>(data.size(), kBlockBytes - filled_);
    sum_ = Crc32c(data.first(n), sum_);
    filled_ += n;
    data = data.subspan(n);
    if (filled_ < kBlockBytes) continue;
    sums_.push_back(sum_);
    sum_ = 0;
    filled_ = 0;
  }
}

std::vector<std::uint32_t> BlockSums::Finish() {
  if (filled_ != 0) sums_.push_back(sum_);
  return std::move(sums_);
}

}  // namespace muster::checkpoint

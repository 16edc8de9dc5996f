#include "train/checkpoint/block_sums.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"

namespace muster::checkpoint {

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

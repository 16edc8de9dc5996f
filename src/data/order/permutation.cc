#include "data/order/permutation.h"

#include <bit>

#include "base/error.h"
#include "base/rng.h"

namespace muster::data {
namespace {

/// The finaliser of splitmix64: each output bit depends on every input bit.
std::uint64_t Scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t MaskOf(unsigned bits) { return bits == 64 ? ~0ull : (1ull << bits) - 1; }

}  // namespace

Permutation::Permutation(std::uint64_t n, std::uint64_t key) : n_(n) {
  const auto bits = n <= 1 ? 0u : static_cast<unsigned>(std::bit_width(n - 1));
  low_bits_ = (bits + 1) / 2;
  low_mask_ = MaskOf(low_bits_);
  high_mask_ = MaskOf(bits - low_bits_);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    round_keys_[round] = Mix(key, 0x7065726d, bits, round);
  }
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  MUSTER_CHECK(index < n_);
  std::uint64_t low = index & low_mask_;
  std::uint64_t high = index >> low_bits_;
  do {
    // Each half in turn is masked with a function of the other: invertible for any widths.
    for (int round = 0; round < kRounds; round += 2) {
      low ^= Scramble(high + round_keys_[round]) & low_mask_;
      high ^= Scramble(low + round_keys_[round + 1]) & high_mask_;
    }
  } while ((high << low_bits_ | low) >= n_);
  return high << low_bits_ | low;
}

}  // namespace muster::data

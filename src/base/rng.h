#pragma once
// Counter-based random numbers: a pure function of key and counter (Philox 4×32-10; Salmon et al.,
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011). No state, so any rank, thread or restart
// draws the same number for the same key: augmentation, dropout, shuffles and the demo's faults
// hang on it. Not for secrets (id.h).

#include <array>
#include <cstdint>

namespace muster {

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// The 128-bit block number `counter` of the stream `key`.
PhiloxBlock Philox(std::uint64_t key, std::array<std::uint32_t, 4> counter);

/// A 64-bit hash of a tuple of numbers, for keys: Mix(seed, step, sample, use).
std::uint64_t Mix(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0, std::uint64_t d = 0);

/// Draws one after another from the stream of a key.
class Rng {
 public:
  explicit Rng(std::uint64_t key) : key_(key) {}
  std::uint32_t Next32();
  std::uint64_t Next64();
  /// Uniform in [0, bound), without bias; bound > 0.
  std::uint64_t Below(std::uint64_t bound);
  /// Uniform in [0, 1), 53 bits.
  double Uniform();

 private:
  std::uint64_t key_;
  std::uint64_t block_number_ = 0;
  PhiloxBlock block_{};
  unsigned used_ = 4;
};

}  // namespace muster

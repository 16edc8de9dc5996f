#pragma once
// A keyed bijection of [0, n) in O(1) memory: a Feistel network on the smallest power of two ≥ n
// with halves that may differ by a bit, six rounds, and cycle walking back into the range (Black
// and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002). The domain is less than 2n,
// so a walk takes fewer than two steps on average. For shuffling, not for secrets. Value; any
// thread.

#include <array>
#include <cstdint>

namespace muster::data {

class Permutation {
 public:
  Permutation(std::uint64_t n, std::uint64_t key);
  /// index < n.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  static constexpr int kRounds = 6;
  std::uint64_t n_;
  unsigned low_bits_;
  std::uint64_t low_mask_;
  std::uint64_t high_mask_;
  std::array<std::uint64_t, kRounds> round_keys_{};
};

}  // namespace muster::data

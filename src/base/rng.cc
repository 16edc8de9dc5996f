#include "base/rng.h"

#include "base/error.h"

namespace muster {

PhiloxBlock Philox(std::uint64_t key, std::array<std::uint32_t, 4> counter) {
  constexpr std::uint32_t kMul0 = 0xD2511F53, kMul1 = 0xCD9E8D57, kWeyl0 = 0x9E3779B9,
                          kWeyl1 = 0xBB67AE85;
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = static_cast<std::uint64_t>(kMul0) * counter[0];
    const std::uint64_t p1 = static_cast<std::uint64_t>(kMul1) * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return counter;
}

std::uint64_t Mix(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  std::uint64_t hash = a;
  for (const std::uint64_t part : {b, c, d}) {
    const auto block = Philox(hash, {static_cast<std::uint32_t>(part),
                                     static_cast<std::uint32_t>(part >> 32), 0x6d757374, 0});
    hash = block[0] | static_cast<std::uint64_t>(block[1]) << 32;
  }
  return hash;
}

std::uint32_t Rng::Next32() {
  if (used_ == 4) {
    block_ = Philox(key_, {static_cast<std::uint32_t>(block_number_),
                           static_cast<std::uint32_t>(block_number_ >> 32), 0, 0});
    ++block_number_;
    used_ = 0;
  }
  return block_[used_++];
}

std::uint64_t Rng::Next64() {
  const std::uint64_t low = Next32();
  return low | static_cast<std::uint64_t>(Next32()) << 32;
}

std::uint64_t Rng::Below(std::uint64_t bound) {
  MUSTER_CHECK(bound > 0);
  // The draws below `reject` would make the first few values likelier; skip them.
  const std::uint64_t reject = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t draw = Next64();
    if (draw >= reject) return draw % bound;
  }
}

double Rng::Uniform() { return static_cast<double>(Next64() >> 11) * 0x1p-53; }

}  // namespace muster

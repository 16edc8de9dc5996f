#pragma once
// Random numbers of training, all counter-based: what is drawn depends on what it is for, never on
// which rank draws it or in which order, so any number of ranks and any restart see the same.
// Pure, any thread.

#include <cstdint>
#include <string_view>

#include "base/rng.h"

namespace muster::train {

/// What a draw is for: part of the key, so new uses never disturb old ones.
enum class Use : std::uint32_t { kInitial = 1, kCrop = 2, kFlip = 3 };

struct DrawKey {
  std::uint64_t seed = 0;    ///< of the run
  std::uint64_t step = 0;    ///< optimizer steps finished before this one
  std::uint64_t sample = 0;  ///< global row number in the dataset
  std::uint32_t layer = 0;   ///< index of the drawing layer; 0 for input augmentation
};

inline Rng DrawsFor(const DrawKey& key, Use use) {
  const auto layer_and_use = (std::uint64_t{key.layer} << 32) | static_cast<std::uint32_t>(use);
  return Rng(Mix(key.seed, key.step, key.sample, layer_and_use));
}

/// For the initial value of a parameter: keyed by its name (FNV-1a), not by its place in the model.
inline Rng InitialDraws(std::uint64_t seed, std::string_view parameter) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : parameter) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return Rng(Mix(seed, hash, 0, static_cast<std::uint32_t>(Use::kInitial)));
}

}  // namespace muster::train

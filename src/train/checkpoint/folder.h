#pragma once
// Names in a checkpoints folder (docs/formats/checkpoint.md):
//   step-000000000100          committed
//   step-000000000100.g3.tmp   half-written by generation 3, or on its way out
//   latest                     the name of the newest committed one, for people and scripts

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/strong_id.h"

namespace muster::checkpoint {

inline constexpr std::uint64_t kMostStep = 999'999'999'999;
inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kManifestSumName = "manifest.crc32c";
inline constexpr std::string_view kLatestName = "latest";

std::string StepName(std::uint64_t step);
std::string TemporaryName(std::uint64_t step, Generation generation);
std::string RankFileName(Rank rank, std::uint32_t world);
/// The step of a committed checkpoint's name.
std::optional<std::uint64_t> ParseStepName(std::string_view name);
/// The generation of a temporary name.
std::optional<Generation> ParseTemporaryName(std::string_view name);
/// "e3069283\n", what manifest.crc32c holds.
std::string SumText(std::uint32_t sum);

}  // namespace muster::checkpoint

#pragma once
// Names in a checkpoints folder (docs/formats/checkpoint.md):
//   step-000000000100              committed
//   step-000000000100.RUN.g3.tmp   half-written by generation 3 of that run, or on its way out
//   latest                         the name of the newest committed one, for people and scripts
//   .lock                          flocked by the run that writes here (lock.h)
//   .probe.tmp                     for a moment, to see whether the folder can be written

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
inline constexpr std::string_view kLockName = ".lock";
inline constexpr std::string_view kProbeName = ".probe.tmp";

std::string StepName(std::uint64_t step);
/// `run` is a RunTag, or empty.
std::string TemporaryName(std::uint64_t step, Generation generation, std::string_view run = {});
/// A run's id as part of a file name: at most 64 letters, digits, '-' and '_', others become '_'.
std::string RunTag(std::string_view run_id);
std::string RankFileName(Rank rank, std::uint32_t world);
/// The step of a committed checkpoint's name.
std::optional<std::uint64_t> ParseStepName(std::string_view name);
/// Whether a name is one that TemporaryName gives, of any run.
bool IsTemporaryName(std::string_view name);
/// "e3069283\n", what manifest.crc32c holds.
std::string SumText(std::uint32_t sum);

}  // namespace muster::checkpoint

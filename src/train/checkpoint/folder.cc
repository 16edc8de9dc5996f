#include "train/checkpoint/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace muster::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kDigits = 12;
constexpr std::string_view kTemporary = ".tmp";

std::optional<std::uint64_t> Decimal(std::string_view text) {
  if (text.empty() || !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

std::string StepName(std::uint64_t step) { return fmt::format("step-{:012}", step); }

std::string TemporaryName(std::uint64_t step, Generation generation) {
  return StepName(step) + ".g" + std::to_string(generation.value()) + std::string(kTemporary);
}

std::string RankFileName(Rank rank, std::uint32_t world) {
  return fmt::format("rank-{:05}-of-{:05}.safetensors", rank.value(), world);
}

std::optional<std::uint64_t> ParseStepName(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kDigits) return std::nullopt;
  return Decimal(name.substr(kPrefix.size()));
}

std::optional<Generation> ParseTemporaryName(std::string_view name) {
  constexpr std::size_t kStep = kPrefix.size() + kDigits;
  if (!name.ends_with(kTemporary) || name.size() < kStep + 2 + kTemporary.size())
    return std::nullopt;
  if (!ParseStepName(name.substr(0, kStep)) || name.substr(kStep, 2) != ".g") return std::nullopt;
  name.remove_suffix(kTemporary.size());
  const auto generation = Decimal(name.substr(kStep + 2));
  if (!generation) return std::nullopt;
  return Generation(*generation);
}

std::string SumText(std::uint32_t sum) { return fmt::format("{:08x}\n", sum); }

}  // namespace muster::checkpoint

#include "train/checkpoint/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace muster::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kDigits = 12;
constexpr std::string_view kTemporary = ".tmp";
constexpr std::size_t kMostTag = 64;

bool InTag(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_';
}

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

std::string TemporaryName(std::uint64_t step, Generation generation, std::string_view run) {
  return fmt::format("{}{}{}.g{}{}", StepName(step), run.empty() ? "" : ".", run,
                     generation.value(), kTemporary);
}

std::string RunTag(std::string_view run_id) {
  std::string tag(run_id.substr(0, kMostTag));
  std::ranges::replace_if(tag, [](char c) { return !InTag(c); }, '_');
  return tag;
}

std::string RankFileName(Rank rank, std::uint32_t world) {
  return fmt::format("rank-{:05}-of-{:05}.safetensors", rank.value(), world);
}

std::optional<std::uint64_t> ParseStepName(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kDigits) return std::nullopt;
  return Decimal(name.substr(kPrefix.size()));
}

bool IsTemporaryName(std::string_view name) {
  constexpr std::size_t kStep = kPrefix.size() + kDigits;
  if (!name.ends_with(kTemporary) || !ParseStepName(name.substr(0, kStep))) return false;
  name.remove_suffix(kTemporary.size());
  const std::size_t mark = name.rfind(".g");
  if (mark == std::string_view::npos || mark < kStep || !Decimal(name.substr(mark + 2)))
    return false;
  const std::string_view run = name.substr(kStep, mark - kStep);
  return run.empty() ||
         (run.size() > 1 && run[0] == '.' && std::ranges::all_of(run.substr(1), InTag));
}

std::string SumText(std::uint32_t sum) { return fmt::format("{:08x}\n", sum); }

}  // namespace muster::checkpoint

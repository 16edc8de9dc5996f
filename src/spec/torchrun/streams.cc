#include "spec/torchrun/streams.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <vector>

namespace muster::spec::torchrun {
namespace {

/// Cuts a whole number off the front.
std::optional<std::uint32_t> TakeNumber(std::string_view* text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return number;
}

bool Take(std::string_view* text, char c) {
  if (!text->starts_with(c)) return false;
  text->remove_prefix(1);
  return true;
}

}  // namespace

unsigned StreamChoice::Of(std::uint32_t rank) const {
  const auto found = ranks.find(rank);
  return found == ranks.end() ? all : found->second;
}

std::set<std::uint32_t> StreamChoice::Named() const {
  std::set<std::uint32_t> named;
  for (const auto& [rank, streams] : ranks) named.insert(rank);
  return named;
}

std::string StreamChoice::Text() const {
  if (all != 0) return std::to_string(all);
  std::vector<std::string> parts;
  for (const auto& [rank, streams] : ranks) parts.push_back(fmt::format("{}:{}", rank, streams));
  return fmt::format("{}", fmt::join(parts, ","));
}

unsigned ShownStreams::Of(std::uint32_t rank) const {
  if (!only.empty() && !only.contains(rank)) return 0;
  return (~redirected.Of(rank) | teed.Of(rank)) & 3U;
}

bool ShownStreams::Everything() const {
  return only.empty() && redirected.all == 0 && redirected.ranks.empty();
}

std::string RanksText(const std::set<std::uint32_t>& ranks) {
  return fmt::format("{}", fmt::join(ranks, ","));
}

std::optional<StreamChoice> ParseStreams(std::string_view text) {
  StreamChoice choice;
  for (bool first = true;; first = false) {
    const auto number = TakeNumber(&text);
    if (!number) return std::nullopt;
    if (first && text.empty()) {
      choice.all = *number;
      return *number <= 3 ? std::optional(choice) : std::nullopt;
    }
    if (!Take(&text, ':')) return std::nullopt;
    const auto streams = TakeNumber(&text);
    if (!streams || *streams > 3) return std::nullopt;
    choice.ranks[*number] = *streams;
    if (text.empty()) return choice;
    if (!Take(&text, ',')) return std::nullopt;
  }
}

std::optional<std::set<std::uint32_t>> ParseRanks(std::string_view text) {
  std::set<std::uint32_t> ranks;
  for (;;) {
    const auto rank = TakeNumber(&text);
    if (!rank) return std::nullopt;
    ranks.insert(*rank);
    if (text.empty()) return ranks;
    if (!Take(&text, ',')) return std::nullopt;
  }
}

}  // namespace muster::spec::torchrun

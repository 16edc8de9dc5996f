#include "agent/coordinator/fault_sentence.h"

#include <fmt/format.h>

#include <charconv>

namespace muster::agent {
namespace {

constexpr std::size_t kMostSentence = 300;
constexpr std::string_view kTwice = ", twice";
constexpr std::string_view kTimes = " times";
constexpr std::string_view kThen = ", then ";
constexpr std::string_view kAtLast = ", at last ";

struct Counted {
  std::string_view text;
  std::uint32_t times = 1;
};

/// "A, then B, 3 times" → {"A, then B", 3}.
Counted Split(std::string_view sentence) {
  if (sentence.ends_with(kTwice)) return {sentence.substr(0, sentence.size() - kTwice.size()), 2};
  const auto comma = sentence.rfind(", ");
  if (comma == std::string_view::npos || !sentence.ends_with(kTimes)) return {sentence};
  const std::string_view number =
      sentence.substr(comma + 2, sentence.size() - kTimes.size() - comma - 2);
  std::uint32_t times = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), times);
  if (error != std::errc() || end != number.data() + number.size()) return {sentence};
  return {sentence.substr(0, comma), times};
}

bool EndsWithFault(std::string_view text, std::string_view headline) {
  if (!text.ends_with(headline)) return false;
  const std::string_view before = text.substr(0, text.size() - headline.size());
  return before.empty() || before.ends_with(kThen) || before.ends_with(kAtLast);
}

}  // namespace

std::string WithFault(const std::string& before, const std::string& headline) {
  if (before.empty()) return headline;
  const Counted last = Split(before);
  if (EndsWithFault(last.text, headline)) {
    const std::string count =
        last.times == 1 ? std::string(kTwice) : fmt::format(", {}{}", last.times + 1, kTimes);
    return std::string(last.text) + count;
  }
  if (before.size() > kMostSentence) return fmt::format("several faults{}{}", kAtLast, headline);
  return fmt::format("{}{}{}", before, kThen, headline);
}

bool IsOnly(std::string_view headline, std::string_view sentence) {
  return Split(sentence).text == headline;
}

}  // namespace muster::agent

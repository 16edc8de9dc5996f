#include "spec/option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "base/near_miss.h"

namespace muster::spec {
namespace {

/// {"a", "b", "c"} → "a, b or c".
std::string Alternatives(const std::vector<std::string>& words) {
  const auto last = std::prev(words.end());
  return fmt::format("{} or {}", fmt::join(words.begin(), last, ", "), *last);
}

}  // namespace

void TakeOneOf(CLI::Option& option, const std::vector<std::string>& words) {
  const auto check = [words](const std::string& value) -> std::string {
    if (std::ranges::find(words, value) != words.end()) return {};
    const std::vector<std::string_view> views(words.begin(), words.end());
    const auto meant = NearMiss(value, views);
    return fmt::format("takes {}, not '{}'{}", Alternatives(words), value,
                       meant ? fmt::format(": did you mean {}?", *meant) : "");
  };
  option.check(CLI::Validator(check, fmt::format("{{{}}}", fmt::join(words, ","))));
}

void TakeWithin(CLI::Option& option, WholeRange range) {
  const auto check = [range](const std::string& value) -> std::string {
    std::uint64_t number = 0;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    if (error == std::errc() && stop == end && number >= range.least && number <= range.most) {
      return {};
    }
    return fmt::format("takes a number from {} to {}, not {}", range.least, range.most, value);
  };
  option.check(CLI::Validator(check, fmt::format("from {} to {}", range.least, range.most)));
}

}  // namespace muster::spec

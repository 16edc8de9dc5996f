#include "profile/logs/log_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "profile/report/records.h"

namespace muster::profile {
namespace {

constexpr std::size_t kMostFiles = 1'000'000;

/// The number between `begin` and `end`, as we write it: no sign, no zero in front.
std::optional<std::uint64_t> NumberIn(std::string_view name, std::string_view begin,
                                      std::string_view end) {
  if (!name.starts_with(begin) || !name.ends_with(end)) return std::nullopt;
  if (name.size() <= begin.size() + end.size()) return std::nullopt;
  const auto digits = name.substr(begin.size(), name.size() - begin.size() - end.size());
  std::uint64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  if (!whole || fmt::to_string(number) != digits) return std::nullopt;
  return number;
}

void AddRank(const RunFiles& files, std::uint32_t rank, std::vector<LogName>& logs) {
  const auto names = files.List(fmt::format("logs/rank-{}", rank), kMostFiles);
  if (!names) return;
  for (const std::string& name : *names) {
    if (logs.size() >= kMostFiles) return;
    for (const bool err : {false, true}) {
      const auto generation = NumberIn(name, "gen-", err ? ".stderr.log" : ".stdout.log");
      if (generation) logs.push_back({.generation = *generation, .rank = rank, .err = err});
    }
  }
}

}  // namespace

std::string LogName::log_path() const {
  return fmt::format("logs/rank-{}/gen-{}.{}.log", rank, generation, err ? "stderr" : "stdout");
}

std::string LogName::index_path() const {
  return fmt::format("logs/rank-{}/gen-{}.{}.idx", rank, generation, err ? "stderr" : "stdout");
}

bool LogChoice::Takes(const LogName& name) const {
  if (generation && *generation != name.generation) return false;
  if (!(name.err ? err : out)) return false;
  return ranks.empty() || std::ranges::find(ranks, name.rank) != ranks.end();
}

Result<std::vector<LogName>> ListLogs(const RunFiles& files) {
  const auto names = files.List("logs", kMostFiles);
  if (!names && names.error().code() == Code::kNotFound) return std::vector<LogName>();
  if (!names) return names.error();
  std::vector<LogName> logs;
  for (const std::string& name : *names) {
    const auto rank = NumberIn(name, "rank-", "");
    if (rank && *rank < kMaxRanks) AddRank(files, static_cast<std::uint32_t>(*rank), logs);
  }
  std::ranges::sort(logs);
  return logs;
}

}  // namespace muster::profile

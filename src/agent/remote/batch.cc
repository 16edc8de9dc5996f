#include "agent/remote/batch.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace muster::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 10;

bool IsCount(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned();
}

}  // namespace

/// The reports are JSON already.
std::string FormatBatch(const ReportBatch& batch) {
  std::string text = fmt::format(R"({{"first":{},"seen":{},"sent_ns":{},"reports":[)", batch.first,
                                 batch.seen, batch.sent.time_since_epoch().count());
  for (const std::string& report : batch.reports) {
    if (text.back() != '[') text += ',';
    text += report;
  }
  return text + "]}";
}

Result<ReportBatch> ParseBatch(std::string_view text) {
  const auto limit = [](int depth, Json::parse_event_t, Json&) { return depth <= kDeepest; };
  const Json json = Json::parse(text, limit, false);
  const bool whole = json.is_object() && IsCount(json, "first") && IsCount(json, "seen") &&
                     IsCount(json, "sent_ns") && json.contains("reports") &&
                     json["reports"].is_array();
  if (!whole) return Error(Code::kInvalid, "a batch of reports that is none");
  ReportBatch batch{.first = json["first"].get<std::uint64_t>(),
                    .seen = json["seen"].get<std::uint64_t>()};
  const auto sent = json["sent_ns"].get<std::uint64_t>();
  constexpr std::uint64_t kLatest = 1ULL << 62;
  if (batch.first == 0 || sent > kLatest) {
    return Error(Code::kInvalid, "a batch of reports with impossible numbers");
  }
  batch.sent = Instant(std::chrono::nanoseconds(static_cast<std::int64_t>(sent)));
  for (const Json& report : json["reports"]) batch.reports.push_back(report.dump());
  return batch;
}

}  // namespace muster::agent

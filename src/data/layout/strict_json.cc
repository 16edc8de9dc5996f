#include "data/layout/strict_json.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"

namespace muster::data {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMostShown = 60;  // bytes of a value in a message

/// Follows the parser and remembers what it would pass over.
class Watch {
 public:
  bool See(Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        open_.emplace_back();
        too_deep_ = too_deep_ || open_.size() > kMaxDepth;
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        open_.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!open_.back().insert(parsed.get<std::string>()).second && twice_.empty()) {
          twice_ = parsed.dump();
        }
        break;
      case Json::parse_event_t::value:
        break;
    }
    return true;
  }

  Status Outcome() const {
    if (too_deep_) return Error(Code::kDataLoss, "it is nested too deeply");
    if (twice_.empty()) return Ok();
    return Error(Code::kDataLoss,
                 fmt::format("the key {} stands twice", CutText(twice_, kMostShown)));
  }

 private:
  std::vector<std::set<std::string>> open_;  ///< the keys so far; an array has none
  std::string twice_;
  bool too_deep_ = false;
};

/// The code unit of an escape "\uXXXX" at the start of `text`; 0: there is none.
unsigned EscapedUnit(std::string_view text) {
  if (!text.starts_with("\\u") || text.size() < 6) return 0;
  unsigned unit = 0;
  const auto [end, failed] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  return failed == std::errc() && end == text.data() + 6 ? unit : 0;
}

bool IsHigh(unsigned unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool IsLow(unsigned unit) { return unit >= 0xdc00 && unit < 0xe000; }

}  // namespace

std::string WithoutLoneSurrogates(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const unsigned unit = EscapedUnit(rest);
    const bool pair = IsHigh(unit) && IsLow(EscapedUnit(rest.substr(6)));
    const bool lone = !pair && (IsHigh(unit) || IsLow(unit));
    // Behind any backslash stands what it escapes: a second one begins nothing.
    const std::size_t size = pair ? 12 : unit != 0 ? 6 : rest[0] == '\\' ? 2 : 1;
    out += lone ? std::string_view("\\ufffd") : rest.substr(0, size);
    at += size;
  }
  return out;
}

Result<Json> ParseStrictly(std::string_view text) {
  if (!IsUtf8(text)) return Error(Code::kDataLoss, "it is not UTF-8");
  if (text.starts_with("\xef\xbb\xbf")) {
    return Error(Code::kDataLoss, "it begins with a byte order mark");
  }
  Watch watch;
  Json json = Json::parse(
      WithoutLoneSurrogates(text),
      [&watch](int, Json::parse_event_t event, Json& parsed) { return watch.See(event, parsed); },
      false);
  if (json.is_discarded() || !json.is_object()) {
    return Error(Code::kDataLoss, "it is not a JSON object");
  }
  MUSTER_TRY(watch.Outcome());
  return json;
}

std::string ShownJson(const Json& value) {
  return CutText(value.dump(-1, ' ', false, Json::error_handler_t::replace), kMostShown);
}

}  // namespace muster::data

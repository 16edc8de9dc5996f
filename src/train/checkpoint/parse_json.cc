#include "train/checkpoint/parse_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::checkpoint {
namespace {

/// Nesting without a parser, which would have to keep what it nests.
bool DeeperThan(std::string_view text, int limit) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if ((c == '{' || c == '[') && ++depth > limit) return true;
    if (c == '}' || c == ']') --depth;
  }
  return false;
}

using Event = nlohmann::json::parse_event_t;

/// Which of two values of one key counts differs from reader to reader, so there may be one only.
class KeyWatch {
 public:
  bool See(Event event, const nlohmann::json& value) {
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !repeated_) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) repeated_ = key.substr(0, 200);
    }
    return true;
  }
  const std::optional<std::string>& repeated() const { return repeated_; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::optional<std::string> repeated_;
};

Error Bad(std::string_view where, const char* key, std::string_view what) {
  return Error(Code::kDataLoss, std::string(where) + ": '" + key + "' is not " + std::string(what));
}

}  // namespace

Result<nlohmann::json> ParseJsonObject(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    return Error(Code::kDataLoss, "JSON of " + std::to_string(text.size()) + " bytes is too large");
  if (DeeperThan(text, limits.depth))
    return Error(Code::kDataLoss,
                 "JSON is nested deeper than " + std::to_string(limits.depth) + " levels");
  if (text.starts_with("\xef\xbb\xbf"))
    return Error(Code::kDataLoss, "JSON begins with a byte order mark");
  // The parser takes a NUL for the end and would ignore what is behind it.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    return Error(Code::kDataLoss, "JSON breaks at byte " + std::to_string(nul + 1));
  try {
    KeyWatch keys;
    nlohmann::json parsed = nlohmann::json::parse(
        text, [&](int, Event event, nlohmann::json& value) { return keys.See(event, value); });
    if (keys.repeated())
      return Error(Code::kDataLoss, "JSON has the key '" + *keys.repeated() + "' twice");
    if (!parsed.is_object()) return Error(Code::kDataLoss, "JSON is not an object");
    return parsed;
  } catch (const nlohmann::json::parse_error& error) {
    return Error(Code::kDataLoss, "JSON breaks at byte " + std::to_string(error.byte));
  } catch (const nlohmann::json::exception&) {  // a number out of range
    return Error(Code::kDataLoss, "JSON holds a value out of range");
  }
}

Result<std::uint64_t> Unsigned(const nlohmann::json& object, const char* key, std::uint64_t limit,
                               std::string_view where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() > limit)
    return Bad(where, key, "an integer from 0 to " + std::to_string(limit));
  return found->get<std::uint64_t>();
}

Result<std::string> Text(const nlohmann::json& object, const char* key, std::size_t limit,
                         std::string_view where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string() ||
      found->get_ref<const std::string&>().size() > limit)
    return Bad(where, key, "a string of at most " + std::to_string(limit) + " bytes");
  return found->get<std::string>();
}

Result<const nlohmann::json*> Member(const nlohmann::json& object, const char* key,
                                     std::string_view kind, std::string_view where) {
  const auto found = object.find(key);
  if (found == object.end() || found->type_name() != kind) return Bad(where, key, kind);
  return &*found;
}

}  // namespace muster::checkpoint

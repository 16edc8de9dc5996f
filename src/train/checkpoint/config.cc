// What a model's configuration must share with the one in a checkpoint: everything.
#include <nlohmann/json.hpp>

#include "train/checkpoint/manifest.h"
#include "train/checkpoint/parse_json.h"

namespace muster::checkpoint {
namespace {

using nlohmann::json;

std::string ValueText(const json& object, const std::string& key) {
  constexpr std::size_t kMost = 200;
  const auto found = object.find(key);
  if (found == object.end()) return "absent";
  return found->dump(-1, ' ', true, json::error_handler_t::replace).substr(0, kMost);
}

bool SameAt(const json& a, const json& b, const std::string& key) {
  const auto in_a = a.find(key);
  const auto in_b = b.find(key);
  return in_a != a.end() && in_b != b.end() && *in_a == *in_b;
}

}  // namespace

Status RequireSameConfig(const Manifest& manifest, std::string_view config_json) {
  const json stored = MUSTER_TRY(Within("config", ParseJsonObject(manifest.config_json, {})));
  const auto own = ParseJsonObject(config_json, {});
  if (!own) return Error(Code::kInvalid, "the model's configuration: " + own.error().message());
  json keys = stored;
  keys.update(*own);
  for (const auto& [key, value] : keys.items()) {
    if (SameAt(stored, *own, key)) continue;
    return Error(
        Code::kPrecondition,
        "'" + key + "' is " + ValueText(stored, key) + " in the checkpoint and " +
            ValueText(*own, key) + " in this run",
        "resume with the configuration that wrote it, or choose another checkpoint folder");
  }
  return Ok();
}

}  // namespace muster::checkpoint

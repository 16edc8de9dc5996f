#include "data/layout/hf_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "data/layout/hf_features.h"
#include "data/layout/strict_json.h"

namespace muster::data {
namespace {

using Json = nlohmann::json;
using Sentences = std::vector<std::string>;

void Refuse(const std::string& key, const Json& value, Sentences& out) {
  out.push_back(
      fmt::format("{} is {}, which Hugging Face datasets does not take", key, ShownJson(value)));
}

/// "1.20.3".
bool IsVersion(const Json& value) {
  if (!value.is_string()) return false;
  std::string_view text = value.get_ref<const std::string&>();
  const auto take_number = [&text] {
    const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(end);
    return end > 0;
  };
  for (int part = 0; part < 3; ++part) {
    if (part > 0 && !text.starts_with('.')) return false;
    if (part > 0) text.remove_prefix(1);
    if (!take_number()) return false;
  }
  return text.empty();
}

void CheckVersion(const Json& version, Sentences& out) {
  if (version.is_null() || IsVersion(version)) return;
  if (version.is_object() && version.contains("version_str")) {
    if (IsVersion(version["version_str"])) return;
    return Refuse("version.version_str", version["version_str"], out);
  }
  if (version.is_object()) return out.push_back("version.version_str is gone");
  Refuse("version", version, out);
}

void CheckSupervisedKeys(const Json& keys, Sentences& out) {
  const auto known = [](const auto& item) {
    return item.key() == "input" || item.key() == "output";
  };
  if (keys.is_null() || (keys.is_array() && keys.size() <= 2)) return;
  const auto items = keys.items();
  if (keys.is_object() && std::all_of(items.begin(), items.end(), known)) return;
  Refuse("supervised_keys", keys, out);
}

/// What a split is made of; one version knows a key that another does not.
constexpr std::array<std::string_view, 6> kSplitKeys{
    "name", "num_bytes", "num_examples", "shard_lengths", "dataset_name", "original_shard_lengths"};

/// Its name, as Python tells names apart; none when it is no split.
std::string SplitKey(const std::string& key, const Json& split, Sentences& out) {
  if (!split.is_object()) {
    out.push_back(fmt::format("{} is {}, which is no split", key, ShownJson(split)));
    return {};
  }
  for (const auto& [name, value] : split.items()) {
    if (std::ranges::find(kSplitKeys, std::string_view(name)) != kSplitKeys.end()) continue;
    out.push_back(fmt::format("{}.{} is nothing that a split has", key, name));
    return {};
  }
  const Json name = split.value("name", Json(""));
  if (!name.is_structured())
    return name.is_boolean() ? Json(int{name.get<bool>()}).dump() : name.dump();
  Refuse(key + ".name", name, out);
  return {};
}

void CheckSplits(const Json& splits, Sentences& out) {
  // An empty text is an empty list to Python.
  if (splits.is_null() || splits == Json("")) return;
  if (!splits.is_structured()) return Refuse("splits", splits, out);
  std::set<std::string> names;
  for (const auto& [place, split] : splits.items()) {
    const std::string name = SplitKey("splits." + place, split, out);
    if (name.empty() || names.insert(name).second) continue;
    out.push_back(fmt::format("splits has the name {} twice", name));
  }
}

void CheckPostProcessed(const Json& post, Sentences& out) {
  if (post.is_null()) return;
  if (!post.is_object()) return Refuse("post_processed", post, out);
  const Json features = post.value("features", Json());
  if (features.is_null()) return;
  if (!features.is_object()) return Refuse("post_processed.features", features, out);
  CheckFeatures("post_processed.features", features, nullptr, out);
}

}  // namespace

void CheckOtherInfo(const Json& info, Sentences& out) {
  CheckVersion(info.value("version", Json()), out);
  CheckSupervisedKeys(info.value("supervised_keys", Json()), out);
  CheckSplits(info.value("splits", Json()), out);
  CheckPostProcessed(info.value("post_processed", Json()), out);
}

}  // namespace muster::data

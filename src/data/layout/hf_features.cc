#include "data/layout/hf_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "data/layout/strict_json.h"

namespace muster::data {
namespace {

using Json = nlohmann::json;
using Sentences = std::vector<std::string>;
using arrow::TypeId;

std::string KindOf(const Json& feature) {
  const auto type = feature.find("_type");
  return type != feature.end() && type->is_string() ? type->get<std::string>() : std::string();
}

void CheckFeature(const std::string& key, const Json& feature, Sentences& out);

void CheckNames(const std::string& key, const Json& feature, Sentences& out) {
  const auto names = feature.find("names");
  if (names == feature.end() || !names->is_array()) {
    out.push_back(key + ".names is no list of the classes");
    return;
  }
  std::set<std::string> seen;
  for (const Json& name : *names) {
    if (!name.is_string() || seen.insert(name.get<std::string>()).second) continue;
    out.push_back(fmt::format("{}.names has {} twice", key, ShownJson(name)));
  }
}

/// An object with a _type, which names a class of HF's.
void CheckTyped(const std::string& key, const Json& feature, Sentences& out) {
  const std::string kind = KindOf(feature);
  if (kind.empty()) {
    out.push_back(fmt::format("{}._type is {}", key, ShownJson(feature["_type"])));
  } else if (kind == "ClassLabel") {
    CheckNames(key, feature, out);
  } else if (kind == "Value") {
    if (!feature.contains("dtype") || !feature["dtype"].is_string()) {
      out.push_back(key + ".dtype is no type's name");
    }
  } else if (kind == "Sequence" || kind == "List" || kind == "LargeList") {
    if (!feature.contains("feature")) {
      out.push_back(key + ".feature is gone");
    } else {
      CheckFeature(key + ".feature", feature["feature"], out);
    }
  }
}

void CheckFeature(const std::string& key, const Json& feature, Sentences& out) {
  if (feature.is_array()) {
    for (const Json& item : feature) CheckFeature(key + "[]", item, out);
  } else if (!feature.is_object()) {
    out.push_back(fmt::format("{} is {}, which is no feature", key, ShownJson(feature)));
  } else if (feature.contains("_type") && !feature["_type"].is_object()) {
    CheckTyped(key, feature, out);
  } else {
    for (const auto& [name, child] : feature.items()) CheckFeature(key + "." + name, child, out);
  }
}

/// The names of a column's type that string_to_arrow takes; none: it is not a plain one.
std::vector<std::string> TypeNames(const arrow::Field& field) {
  // Not a switch over all kinds: most of them have no single name.
  if (field.type == TypeId::kInt) {
    return {fmt::format("{}int{}", field.is_signed ? "" : "u", field.bit_width)};
  }
  if (field.type == TypeId::kFloat && field.bit_width == 64) return {"float64", "double"};
  if (field.type == TypeId::kFloat && field.bit_width == 32) return {"float32", "float"};
  if (field.type == TypeId::kFloat) return {"float16"};
  if (field.type == TypeId::kBool) return {"bool", "bool_"};
  if (field.type == TypeId::kUtf8) return {"string", "utf8"};
  if (field.type == TypeId::kLargeUtf8) return {"large_string", "large_utf8"};
  if (field.type == TypeId::kBinary) return {"binary"};
  if (field.type == TypeId::kLargeBinary) return {"large_binary"};
  return {};
}

/// A column whose feature makes another Arrow type of it is refused by HF.
void CheckColumn(const arrow::Field& field, const Json& feature, Sentences& out) {
  if (!feature.is_object()) return;
  const std::string kind = KindOf(feature);
  const std::string key = "features." + field.name;
  const std::vector<std::string> names = TypeNames(field);
  if (kind == "ClassLabel" && (names.empty() || names[0] != "int64")) {
    out.push_back(key + " is a ClassLabel, and the shards hold no int64 there");
  } else if (kind == "Image" && field.type != TypeId::kStruct) {
    out.push_back(key + " is an Image, and the shards hold none there");
  } else if (kind == "Value" && !names.empty() && feature.contains("dtype") &&
             feature["dtype"].is_string() &&
             std::ranges::find(names, feature["dtype"].get<std::string>()) == names.end()) {
    out.push_back(fmt::format("{}.dtype is {}, and {} in the shards", key,
                              ShownJson(feature["dtype"]), names[0]));
  }
}

}  // namespace

void CheckFeatures(const Json& features, const arrow::Schema* schema, Sentences& out) {
  for (const auto& [name, feature] : features.items()) {
    CheckFeature("features." + name, feature, out);
    if (schema != nullptr && schema->IndexOf(name) < 0) {
      out.push_back(fmt::format("features.{} is no column of the shards", name));
    }
  }
  if (schema == nullptr) return;
  for (const arrow::Field& field : schema->fields) {
    const auto found = features.find(field.name);
    if (found == features.end()) {
      out.push_back(fmt::format("features.{} is gone", field.name));
    } else {
      CheckColumn(field, *found, out);
    }
  }
}

}  // namespace muster::data

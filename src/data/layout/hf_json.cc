#include "data/layout/hf_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "data/layout/manifest.h"
#include "data/layout/strict_json.h"

namespace muster::data {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json, int indent) {
  // Class names may hold any bytes; a bad one must not turn into an exception.
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json FeaturesJson(const std::vector<std::string>& label_names) {
  return {{"image", {{"_type", "Image"}}},
          {"label", {{"names", label_names}, {"_type", "ClassLabel"}}},
          {"source", {{"dtype", "string"}, {"_type", "Value"}}}};
}

Result<Json> Parse(std::string_view text, std::string_view what) {
  Json json = Json::parse(WithoutLoneSurrogates(text), nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return Error(Code::kDataLoss, fmt::format("{} is not a JSON object", what));
  }
  return json;
}

std::string TextAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::string> TextsAt(const Json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const Json& item : *found) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

/// The first text that stands more than once.
std::optional<std::string> Twice(std::vector<std::string> texts) {
  std::ranges::sort(texts);
  const auto found = std::ranges::adjacent_find(texts);
  return found == texts.end() ? std::nullopt : std::optional(*found);
}

Features FromJson(const Json& features) {
  Features result;
  std::string plain_label;
  for (const auto& [name, feature] : features.items()) {
    if (!feature.is_object()) continue;
    const std::string type = TextAt(feature, "_type");
    if (!type.empty() && type != "Image") result.others.push_back(name);
    if (type == "Image" && result.image.empty()) result.image = name;
    if (type == "ClassLabel" && result.label.empty()) {
      result.label = name;
      result.label_names = TextsAt(feature, "names");
    }
    if (type == "Value" && name == "label" && TextAt(feature, "dtype").starts_with("int")) {
      plain_label = name;
    }
  }
  if (result.label.empty()) result.label = plain_label;
  return result;
}

Result<Features> FeaturesOf(const Json& parent, std::string_view what) {
  const auto features = parent.find("features");
  if (features == parent.end() || !features->is_object()) {
    return Error(Code::kPrecondition, fmt::format("{} has no features", what));
  }
  return FromJson(*features);
}

}  // namespace

std::string SchemaMetadataJson(const std::vector<std::string>& label_names) {
  return Dump({{"info", {{"features", FeaturesJson(label_names)}}}}, -1);
}

std::string DatasetInfoJson(const std::vector<std::string>& label_names) {
  return Dump({{"citation", ""},
               {"description", ""},
               {"features", FeaturesJson(label_names)},
               {"homepage", ""},
               {"license", ""}},
              2);
}

std::string StateJson(const std::vector<std::string>& files, std::string_view fingerprint,
                      std::string_view split) {
  Json data_files = Json::array();
  for (const std::string& file : files) data_files.push_back({{"filename", file}});
  return Dump({{"_data_files", data_files},
               {"_fingerprint", fingerprint},
               {"_format_columns", nullptr},
               {"_format_kwargs", Json::object()},
               {"_format_type", nullptr},
               {"_output_all_columns", false},
               {"_split", split}},
              2);
}

std::string FingerprintOf(const Manifest& manifest) { return manifest.Id().Hex().substr(0, 16); }

std::string StateJson(const Manifest& manifest, std::string_view split) {
  std::vector<std::string> names;
  for (const ShardEntry& shard : manifest.shards) names.push_back(shard.name);
  return StateJson(names, FingerprintOf(manifest), split);
}

std::string DatasetDictJson(const std::vector<std::string>& splits) {
  return Dump({{"splits", splits}}, -1);
}

Result<Features> ParseSchemaMetadata(std::string_view text) {
  const Json json = MUSTER_TRY(Parse(text, "the schema's huggingface metadata"));
  const auto info = json.find("info");
  if (info == json.end() || !info->is_object()) {
    return Error(Code::kPrecondition, "the schema's huggingface metadata has no info");
  }
  return FeaturesOf(*info, "the schema's huggingface metadata");
}

Result<Features> ParseDatasetInfo(std::string_view text) {
  return FeaturesOf(MUSTER_TRY(Parse(text, "dataset_info.json")), "dataset_info.json");
}

Result<State> ParseState(std::string_view text) {
  const Json json = MUSTER_TRY(Parse(text, "state.json"));
  const auto files = json.find("_data_files");
  if (files == json.end() || !files->is_array()) {
    return Error(Code::kDataLoss, "state.json lists no _data_files");
  }
  const auto indices = json.find("_indices_data_files");
  if (indices != json.end() && indices->is_array() && !indices->empty()) {
    return Error(Code::kPrecondition, "the set is a selection of rows through an indices file",
                 "call flatten_indices() on it and save it again");
  }
  State state{.split = TextAt(json, "_split"), .fingerprint = TextAt(json, "_fingerprint")};
  for (const Json& file : *files) {
    const std::string name = file.is_object() ? TextAt(file, "filename") : std::string();
    if (!IsPlainName(name)) {
      return Error(Code::kDataLoss, fmt::format("state.json names the file '{}'", name));
    }
    state.files.push_back(name);
  }
  if (const auto twice = Twice(state.files)) {
    return Error(Code::kDataLoss, fmt::format("state.json lists the file '{}' twice", *twice),
                 "its rows would count double; copy or pack the set again");
  }
  return state;
}

Result<std::vector<std::string>> ParseDatasetDict(std::string_view text) {
  const Json json = MUSTER_TRY(Parse(text, "dataset_dict.json"));
  if (!json.contains("splits") || !json["splits"].is_array()) {
    return Error(Code::kDataLoss, "dataset_dict.json lists no splits");
  }
  std::vector<std::string> splits = TextsAt(json, "splits");
  if (splits.size() != json["splits"].size()) {
    return Error(Code::kDataLoss, "dataset_dict.json lists a split that has no name");
  }
  for (const std::string& split : splits) {
    if (!IsPlainName(split)) {
      return Error(Code::kDataLoss, fmt::format("dataset_dict.json names the split '{}'", split));
    }
  }
  if (const auto twice = Twice(splits)) {
    return Error(Code::kDataLoss,
                 fmt::format("dataset_dict.json lists the split '{}' twice", *twice),
                 "name each split once, or copy or pack the set again");
  }
  return splits;
}

}  // namespace muster::data

#include "data/layout/hf_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "data/layout/hf_features.h"
#include "data/layout/hf_info.h"
#include "data/layout/hf_json.h"
#include "data/layout/strict_json.h"

namespace muster::data {
namespace {

using Json = nlohmann::json;
using Kinds = std::initializer_list<Json::value_t>;
using Sentences = std::vector<std::string>;

constexpr auto kNull = Json::value_t::null;
constexpr auto kText = Json::value_t::string;
constexpr auto kArray = Json::value_t::array;
constexpr auto kObject = Json::value_t::object;
constexpr auto kFlag = Json::value_t::boolean;

/// What a person may write into a set. The name of a split is among them: folders that were packed
/// one by one may be put together under other names.
constexpr std::array<std::string_view, 5> kFreeTexts{"_split", "citation", "description",
                                                     "homepage", "license"};

Json Ours(const std::string& text) { return Json::parse(text, nullptr, false); }

/// Every key of what a pack writes, and inside of it no other.
void Compare(const std::string& key, const Json& written, const Json& found, Sentences& out) {
  if (written.is_object() && found.is_object()) {
    for (const auto& [name, value] : written.items()) {
      const auto here = found.find(name);
      if (here == found.end()) {
        out.push_back(fmt::format("{}.{} is gone", key, name));
      } else {
        Compare(key + "." + name, value, *here, out);
      }
    }
    for (const auto& [name, value] : found.items()) {
      if (!written.contains(name))
        out.push_back(fmt::format("{}.{} is not of this set", key, name));
    }
  } else if (written.is_array() && found.is_array() && written.size() == found.size()) {
    for (std::size_t i = 0; i < written.size(); ++i) {
      Compare(fmt::format("{}[{}]", key, i), written[i], found[i], out);
    }
  } else if (written != found) {
    out.push_back(
        fmt::format("{} is {}, and {} in this set", key, ShownJson(found), ShownJson(written)));
  }
}

/// The keys of `written` at the top, where others may stand beside them.
void CompareKeys(const Json& written, const Json& found, Sentences& out) {
  for (const auto& [key, value] : written.items()) {
    const auto here = found.find(key);
    if (here == found.end()) {
      out.push_back(key + " is gone");
    } else if (std::ranges::find(kFreeTexts, key) == kFreeTexts.end()) {
      Compare(key, value, *here, out);
    } else if (!here->is_string()) {
      out.push_back(fmt::format("{} is {}, which is no text", key, ShownJson(*here)));
    }
  }
}

bool IsOneOf(const Json& value, Kinds kinds) {
  return std::ranges::find(kinds, value.type()) != kinds.end();
}

/// The value, when it is there and of one of the kinds; else what is wrong with it is said.
const Json* Need(const Json& object, const char* key, Kinds kinds, Sentences& out) {
  const auto found = object.find(key);
  if (found == object.end()) {
    out.push_back(fmt::format("{} is gone", key));
    return nullptr;
  }
  if (IsOneOf(*found, kinds)) return &*found;
  out.push_back(
      fmt::format("{} is {}, which Hugging Face datasets does not take", key, ShownJson(*found)));
  return nullptr;
}

/// The same where the key may be absent.
const Json* Take(const Json& object, const char* key, Kinds kinds, Sentences& out) {
  return object.contains(key) ? Need(object, key, kinds, out) : nullptr;
}

/// What with_format knows, the names of libraries that may be absent among them. Not "custom": it
/// needs a function, which no JSON can hold.
constexpr std::array<std::string_view, 16> kFormats{
    "python", "arrow", "pa",      "pyarrow",    "numpy", "np",  "pandas", "pd",
    "torch",  "pt",    "pytorch", "tensorflow", "tf",    "jax", "polars", "pl"};

bool IsFormat(const std::string& name) {
  return std::ranges::find(kFormats, name) != kFormats.end();
}

/// Formats that make arrays hand the words on to them; the others have few of their own.
void CheckFormatWords(const std::string& format, const Json& words, Sentences& out) {
  constexpr std::array<std::string_view, 6> kWithoutArrays{"python",  "arrow",  "pa",
                                                           "pyarrow", "pandas", "pd"};
  if (std::ranges::find(kWithoutArrays, format) == kWithoutArrays.end()) return;
  for (const auto& [word, value] : words.items()) {
    if (word == "token_per_repo_id" || (word == "lazy" && format == "python")) continue;
    out.push_back(fmt::format("_format_kwargs.{} is nothing that the format {} has", word, format));
  }
}

bool HasColumn(const arrow::Schema& schema, const Json& name) {
  return name.is_string() && schema.IndexOf(name.get<std::string>()) >= 0;
}

/// What load_from_disk looks up in any state.json.
void CheckForeignState(const Json& state, const arrow::Schema* schema, Sentences& out) {
  Need(state, "_fingerprint", {kNull, kText}, out);
  const Json* words = Need(state, "_format_kwargs", {kObject}, out);
  const Json* format = Need(state, "_format_type", {kNull, kText}, out);
  if (format != nullptr && format->is_string() && !IsFormat(format->get<std::string>())) {
    out.push_back(fmt::format("_format_type is {}, which is no format", ShownJson(*format)));
  } else if (format != nullptr && words != nullptr) {
    CheckFormatWords(format->is_null() ? "python" : format->get<std::string>(), *words, out);
  }
  Need(state, "_output_all_columns", {kFlag}, out);
  const Json* columns = Need(state, "_format_columns", {kNull, kText, kArray}, out);
  if (columns != nullptr && !columns->is_null() && schema != nullptr) {
    // A text is the name of one column.
    for (const Json& column : columns->is_array() ? *columns : Json::array({*columns})) {
      if (HasColumn(*schema, column)) continue;
      out.push_back(fmt::format("_format_columns names {}, which is no column", ShownJson(column)));
    }
  }
  Need(state, "_split", {kNull, kText}, out);
}

void CheckSplit(const Json& state, Sentences& out) {
  const auto split = state.find("_split");
  if (split == state.end() || !split->is_string()) return;
  if (IsHfSplitName(split->get<std::string>())) return;
  out.push_back(fmt::format("_split is {}, which Hugging Face datasets takes for no split's name",
                            ShownJson(*split)));
}

/// What a pack wrote into the shards and, beside it, into dataset_info.json; null when no shard
/// can say.
Json PackedFeatures(const arrow::Schema* schema) {
  if (schema == nullptr) return nullptr;
  const auto metadata = ParseStrictly(schema->Metadata("huggingface"));
  if (!metadata) return nullptr;
  const auto info = metadata->find("info");
  return info != metadata->end() && info->is_object() ? info->value("features", Json()) : Json();
}

bool IsWordByte(char c) {
  const bool ascii = static_cast<unsigned char>(c) < 0x80;
  return !ascii || c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z');
}

bool IsWords(std::string_view text) {
  for (;;) {
    const auto dot = text.find('.');
    const std::string_view word = text.substr(0, dot);
    // What stands for a lone surrogate is no letter.
    if (word.find("\xef\xbf\xbd") != std::string_view::npos) return false;
    if (word.empty() || !std::ranges::all_of(word, IsWordByte)) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

}  // namespace

bool IsHfSplitName(std::string_view name) {
  // "train[:10%]+test" is one too: each part up to its bracket.
  for (;;) {
    const auto plus = name.find('+');
    const std::string_view part = name.substr(0, plus);
    if (!IsWords(part.substr(0, part.find('[')))) return false;
    if (plus == std::string_view::npos) return true;
    name.remove_prefix(plus + 1);
  }
}

Sentences CheckStateJson(std::string_view text, const HfTruth& truth) {
  const auto state = ParseStrictly(text);
  if (!state) return {state.error().message()};
  Sentences out;
  if (truth.manifest != nullptr) {
    CompareKeys(Ours(StateJson(*truth.manifest, "train")), *state, out);
  } else {
    CheckForeignState(*state, truth.schema, out);
  }
  CheckSplit(*state, out);
  return out;
}

Sentences CheckDatasetInfoJson(std::string_view text, const HfTruth& truth) {
  const auto info = ParseStrictly(text);
  if (!info) return {info.error().message()};
  Sentences out;
  Json packed = truth.manifest == nullptr ? Json() : PackedFeatures(truth.schema);
  if (packed.is_object()) {
    Json written = Ours(DatasetInfoJson({}));
    written["features"] = std::move(packed);
    CompareKeys(written, *info, out);
  } else if (const Json* features = Take(*info, "features", {kNull, kObject}, out)) {
    if (features->is_object()) CheckFeatures("features", *features, truth.schema, out);
  }
  CheckOtherInfo(*info, out);
  return out;
}

Sentences CheckDatasetDictJson(std::string_view text) {
  const auto dict = ParseStrictly(text);
  return dict ? Sentences() : Sentences{dict.error().message()};
}

}  // namespace muster::data

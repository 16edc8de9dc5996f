#include "data/layout/hf_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "data/layout/hf_dtype.h"
#include "data/layout/strict_json.h"

namespace muster::data {
namespace {

using Json = nlohmann::json;
using Sentences = std::vector<std::string>;
using arrow::Field;
using arrow::TypeId;

/// Kinds whose values are bytes, or the path of a file that has them.
constexpr std::array<std::string_view, 8> kFiles{"Image", "Audio", "Video",       "Pdf",
                                                 "Nifti", "Mesh",  "BioSequence", "BioStructure"};

std::string KindOf(const Json& feature) {
  if (!feature.is_object()) return {};
  const auto type = feature.find("_type");
  return type != feature.end() && type->is_string() ? type->get<std::string>() : std::string();
}

/// A column of HF's own called "_type" is an object there; anything else names a class.
bool IsStruct(const Json& feature) {
  return feature.is_object() && (!feature.contains("_type") || feature["_type"].is_object());
}

Field ListOf(Field item, TypeId type = TypeId::kList) {
  item.name = "item";
  return {.type = type, .children = {std::move(item)}};
}

bool SameType(const Field& a, const Field& b) {
  if (!a.extension.empty() || !b.extension.empty()) {
    if (a.extension != b.extension || a.extension_metadata == b.extension_metadata) {
      return a.extension == b.extension;
    }
    return Json::parse(a.extension_metadata, nullptr, false) ==
           Json::parse(b.extension_metadata, nullptr, false);
  }
  const auto same_child = [&](const Field& x, const Field& y) {
    return (a.type != TypeId::kStruct || x.name == y.name) && SameType(x, y);
  };
  return a.type == b.type && a.bit_width == b.bit_width && a.fixed_size == b.fixed_size &&
         (a.type != TypeId::kInt || a.is_signed == b.is_signed) &&
         std::ranges::equal(a.children, b.children, same_child);
}

/// As Python iterates over it: a text by its letters, an object by its keys.
Json AsList(const Json& value) {
  Json list = Json::array();
  if (value.is_object()) {
    for (const auto& [name, unused] : value.items()) list.push_back(name);
    return list;
  }
  if (!value.is_string()) return value;
  for (const char c : value.get_ref<const std::string&>()) {
    const bool begins = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (begins) list.push_back("");
    list.back().get_ref<std::string&>() += c;
  }
  return list;
}

bool IsSortable(const Json& list) {
  if (!list.is_array()) return false;
  const auto all = [&](auto is) { return std::ranges::all_of(list, is); };
  return all([](const Json& item) { return item.is_string(); }) ||
         all([](const Json& item) { return item.is_number() || item.is_boolean(); }) ||
         (list.size() == 1 && !list[0].is_structured());
}

/// What stands in the shards where a feature is looked at; null: not known.
struct Beside {
  const Field* type = nullptr;
  const Json* feature = nullptr;  ///< what the shards' own schema calls it

  Beside Child(const std::string& name) const {
    Beside child;
    if (type != nullptr && type->type == TypeId::kStruct) {
      const auto found = std::ranges::find(type->children, name, &Field::name);
      if (found != type->children.end()) child.type = &*found;
    }
    if (feature != nullptr && IsStruct(*feature) && feature->contains(name)) {
      child.feature = &(*feature)[name];
    }
    return child;
  }
  Beside Item() const {
    const bool one = type != nullptr && type->type != TypeId::kStruct && type->children.size() == 1;
    const bool list = feature != nullptr &&
                      (KindOf(*feature) == "List" || KindOf(*feature) == "LargeList") &&
                      feature->contains("feature");
    return {.type = one ? type->children.data() : nullptr,
            .feature = list ? &(*feature)["feature"] : nullptr};
  }
};

/// Makes the Arrow type of a feature. None when there is none, which is said, or when versions make
/// different ones of it, which is not.
class FeatureReader {
 public:
  explicit FeatureReader(Sentences& out) : out_(out) {}

  std::optional<Field> TypeOf(const std::string& key, const Json& feature, const Beside& beside) {
    if (feature.is_array()) return OfArray(key, feature, beside);
    if (!feature.is_object()) {
      return Bad(fmt::format("{} is {}, which is no feature", key, ShownJson(feature)));
    }
    if (IsStruct(feature)) return OfStruct(key, feature, beside);
    const std::string kind = KindOf(feature);
    if (kind == "Value") return OfValue(key, feature);
    if (kind == "ClassLabel") return OfClassLabel(key, feature);
    if (kind == "List" || kind == "Sequence" || kind == "LargeList") {
      return OfList(key, kind, feature, beside);
    }
    if (std::ranges::find(kFiles, std::string_view(kind)) != kFiles.end()) {
      return arrow::StructField("", {arrow::BinaryField("bytes"), arrow::Utf8Field("path")});
    }
    if (kind == "Translation") return OfTranslation(key, feature);
    if (kind == "TranslationVariableLanguages") return OfVariableTranslation(key, feature);
    if (kind == "Json") return Field{.extension = "arrow.json"};
    for (const int dimensions : {2, 3, 4, 5}) {
      if (kind == fmt::format("Array{}D", dimensions)) return OfGrid(key, kind, feature);
    }
    return Bad(fmt::format("{}._type is {}, which is no kind of feature", key,
                           ShownJson(feature["_type"])));
  }

 private:
  std::nullopt_t Bad(std::string sentence) {
    out_.push_back(std::move(sentence));
    return std::nullopt;
  }

  /// The old spelling of a list: an array around the feature of its items. Newer versions pass over
  /// what stands behind the first.
  std::optional<Field> OfArray(const std::string& key, const Json& feature, const Beside& beside) {
    if (feature.empty()) return Bad(key + " is a list of nothing");
    auto item = TypeOf(key + "[]", feature[0], beside.Item());
    for (std::size_t i = 1; i < feature.size(); ++i) TypeOf(key + "[]", feature[i], {});
    return item ? std::optional(ListOf(*std::move(item))) : std::nullopt;
  }

  /// In the order of the shards, as HF sorts it.
  std::optional<Field> OfStruct(const std::string& key, const Json& feature, const Beside& beside) {
    if (beside.feature != nullptr && !KindOf(*beside.feature).empty() &&
        KindOf(*beside.feature) != "Sequence") {
      return Bad(
          fmt::format("{} is a struct, and {} in the shards", key, ShownJson(*beside.feature)));
    }
    std::vector<Field> fields;
    bool all = true;
    for (const auto& [name, child] : feature.items()) {
      auto type = TypeOf(key + "." + name, child, beside.Child(name));
      all = all && type;
      if (!type) continue;
      type->name = name;
      fields.push_back(*std::move(type));
    }
    if (!all) return std::nullopt;
    if (beside.type == nullptr || beside.type->type != TypeId::kStruct) {
      return arrow::StructField("", std::move(fields));
    }
    const auto place = [&](const Field& field) {
      return std::ranges::find(beside.type->children, field.name, &Field::name) -
             beside.type->children.begin();
    };
    std::ranges::sort(fields, {}, place);
    return arrow::StructField("", std::move(fields));
  }

  std::optional<Field> OfValue(const std::string& key, const Json& feature) {
    const auto dtype = feature.find("dtype");
    if (dtype == feature.end()) return Bad(key + ".dtype is gone");
    if (!dtype->is_string()) {
      return Bad(fmt::format("{}.dtype is {}, which is no type's name", key, ShownJson(*dtype)));
    }
    std::string name = dtype->get<std::string>();
    if (name == "double") name = "float64";
    if (name == "float") name = "float32";
    return OfDtype(key, name);
  }

  std::optional<Field> OfDtype(const std::string& key, const std::string& name) {
    if (auto type = TypeOfDtype(name)) return type;
    return Bad(fmt::format("{}.dtype is {}, which is no type's name", key, ShownJson(Json(name))));
  }

  std::optional<Field> OfClassLabel(const std::string& key, const Json& feature) {
    const auto names = feature.find("names");
    // Python takes a text for the list of its letters.
    if (names == feature.end() || !(names->is_array() || names->is_string())) {
      return Bad(key + ".names is no list of the classes");
    }
    std::set<std::string> seen;
    for (std::size_t i = 0; names->is_array() && i < names->size(); ++i) {
      const Json& name = (*names)[i];
      const std::string text = name.is_string() ? name.get<std::string>() : name.dump();
      if (!seen.insert(text).second) {
        return Bad(fmt::format("{}.names has {} twice", key, ShownJson(name)));
      }
    }
    return arrow::Int64Field("");
  }

  /// −1 where the list may have any length.
  std::optional<std::int64_t> LengthOf(const std::string& key, const Json& feature) {
    const Json length = feature.value("length", Json(-1));
    const bool number =
        length.is_number_integer() || length.is_boolean() ||
        (length.is_number_float() && length.get<double>() > -2 && length.get<double>() < 1e9);
    const auto value = !number               ? std::int64_t{-2}
                       : length.is_boolean() ? std::int64_t{length.get<bool>()}
                                             : length.get<std::int64_t>();
    if (value >= -1 && value <= std::numeric_limits<std::int32_t>::max()) return value;
    return Bad(fmt::format("{}.length is {}, which is no length", key, ShownJson(length)));
  }

  std::optional<Field> OfList(const std::string& key, const std::string& kind, const Json& feature,
                              const Beside& beside) {
    for (const auto& [name, value] : feature.items()) {
      const bool known = name == "_type" || name == "feature" || name == "id" ||
                         (name == "length" && kind != "LargeList");
      if (!known) return Bad(fmt::format("{}.{} is nothing that a {} has", key, name, kind));
    }
    if (!feature.contains("feature")) return Bad(key + ".feature is gone");
    const auto length = LengthOf(key, feature);
    const Json& inner = feature["feature"];
    const bool of_lists = kind == "Sequence" && IsStruct(inner);
    auto item = TypeOf(key + ".feature", inner, of_lists ? Beside() : beside.Item());
    if (!length || !item) return std::nullopt;
    if (of_lists) return StructOfLists(inner, *item, *length, beside);
    if (kind == "LargeList") return ListOf(*std::move(item), TypeId::kLargeList);
    return WithLength(*std::move(item), *length);
  }

  static Field WithLength(Field item, std::int64_t length) {
    Field list = ListOf(std::move(item), length < 0 ? TypeId::kList : TypeId::kFixedSizeList);
    list.fixed_size = length < 0 ? 0 : static_cast<std::int32_t>(length);
    return list;
  }

  /// A Sequence of a struct is a struct of lists.
  static std::optional<Field> StructOfLists(const Json& inner, Field item, std::int64_t length,
                                            const Beside& beside) {
    // Since 4.0 it is a list all the same when every field is a list.
    const bool only_lists = std::ranges::all_of(inner, [](const Json& child) {
      return child.is_array() || KindOf(child) == "List" || KindOf(child) == "Sequence";
    });
    if (only_lists) return std::nullopt;
    for (Field& child : item.children) {
      std::string name = std::move(child.name);
      child = WithLength(std::move(child), length);
      child.name = std::move(name);
    }
    if (beside.type != nullptr && beside.type->type == TypeId::kStruct) {
      std::ranges::sort(item.children, {}, [&](const Field& field) {
        return std::ranges::find(beside.type->children, field.name, &Field::name) -
               beside.type->children.begin();
      });
    }
    return item;
  }

  std::optional<Field> OfTranslation(const std::string& key, const Json& feature) {
    const Json languages = AsList(feature.value("languages", Json()));
    const auto is_text = [](const Json& language) { return language.is_string(); };
    if (!languages.is_array() || !std::ranges::all_of(languages, is_text)) {
      return Bad(key + ".languages is no list of languages");
    }
    const auto sorted = languages.get<std::set<std::string>>();
    Field type = arrow::StructField("", {});
    for (const std::string& language : sorted) type.children.push_back(arrow::Utf8Field(language));
    return type;
  }

  std::optional<Field> OfVariableTranslation(const std::string& key, const Json& feature) {
    // Python takes whatever is empty for none, and sorts the others.
    const Json languages = AsList(feature.value("languages", Json()));
    const bool none = languages.is_null() || languages == Json(0) || languages == Json(false);
    if (!none && !IsSortable(languages)) {
      return Bad(key + ".languages is no list of languages");
    }
    Field texts = ListOf(arrow::Utf8Field(""));
    Field type = arrow::StructField("", {texts, texts});
    type.children[0].name = "language";
    type.children[1].name = "translation";
    return type;
  }

  /// An array of two to five dimensions: an extension type that names its shape and dtype.
  std::optional<Field> OfGrid(const std::string& key, const std::string& kind,
                              const Json& feature) {
    const Json shape = feature.value("shape", Json());
    if (!shape.is_array() || shape.size() != static_cast<std::size_t>(kind[5] - '0') ||
        std::any_of(shape.begin() + 1, shape.end(), [](const Json& d) { return d.is_null(); })) {
      return Bad(
          fmt::format("{}.shape is {}, which is none of an {}", key, ShownJson(shape), kind));
    }
    const Json dtype = feature.value("dtype", Json());
    if (!dtype.is_string()) {
      return Bad(fmt::format("{}.dtype is {}, which is no type's name", key, ShownJson(dtype)));
    }
    if (!OfDtype(key, dtype.get<std::string>())) return std::nullopt;
    return Field{.extension = fmt::format("datasets.features.features.{}ExtensionType", kind),
                 .extension_metadata = Json::array({shape, dtype}).dump()};
  }

  Sentences& out_;
};

/// The features that the shards name in their own schema, as far as they fit its columns: HF takes
/// them for the columns' features only then.
Json OwnFeatures(const arrow::Schema& schema) {
  Json own = Json::object();
  const auto metadata = ParseStrictly(schema.Metadata("huggingface"));
  if (!metadata) return own;
  const Json::json_pointer place("/info/features");
  if (!metadata->contains(place) || !(*metadata)[place].is_object()) return own;
  for (const auto& [name, feature] : (*metadata)[place].items()) {
    const int column = schema.IndexOf(name);
    if (column < 0) continue;
    Sentences unread;
    const Field& field = schema.fields[static_cast<std::size_t>(column)];
    const auto type = FeatureReader(unread).TypeOf("", feature, {.type = &field});
    if (type && SameType(*type, field)) own[name] = feature;
  }
  return own;
}

}  // namespace

void CheckFeatures(const std::string& key, const Json& features, const arrow::Schema* schema,
                   Sentences& out) {
  const Json own = schema == nullptr ? Json::object() : OwnFeatures(*schema);
  FeatureReader reader(out);
  if (!IsStruct(features)) return out.push_back(key + "._type makes it no set of features");
  for (const auto& [name, feature] : features.items()) {
    const std::string where = key + "." + name;
    const int column = schema == nullptr ? -1 : schema->IndexOf(name);
    Beside beside;
    if (column >= 0) beside.type = &schema->fields[static_cast<std::size_t>(column)];
    if (own.contains(name)) beside.feature = &own[name];
    const auto type = reader.TypeOf(where, feature, beside);
    if (schema != nullptr && column < 0) {
      out.push_back(where + " is no column of the shards");
    } else if (type && beside.type != nullptr && !SameType(*type, *beside.type)) {
      out.push_back(fmt::format("{} is {}, and {} in the shards", where, TypeText(*type),
                                TypeText(*beside.type)));
    }
  }
  if (schema == nullptr) return;
  for (const Field& field : schema->fields) {
    if (!features.contains(field.name))
      out.push_back(fmt::format("{}.{} is gone", key, field.name));
  }
}

}  // namespace muster::data

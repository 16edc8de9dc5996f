#include "spec/import/fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace muster::spec {
namespace {

constexpr std::size_t kMostShown = 48;

}  // namespace

bool IsScalar(const Value& value) {
  return value.kind == Value::Kind::kText || value.kind == Value::Kind::kPlain;
}

std::optional<std::uint64_t> ToWholeText(const Value& value) {
  if (!IsScalar(value)) return std::nullopt;
  Value plain = value;
  plain.kind = Value::Kind::kPlain;
  return ToWhole(plain);
}

std::string ShortValue(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return "null";
    case Value::Kind::kPlain:
    case Value::Kind::kText:
      return CutText(PlainLine(value.text), kMostShown);
    case Value::Kind::kMap:
      return Counted(value.members.size(), "key");
    case Value::Kind::kList:
      break;
  }
  std::string line = "[";
  for (const Value& item : value.items) {
    if (!IsScalar(item))
      return value.items.size() == 1 ? "1 entry" : fmt::format("{} entries", value.items.size());
    line += fmt::format("{}{}", line.size() > 1 ? ", " : "", PlainLine(item.text));
    if (line.size() > kMostShown) return CutText(line, kMostShown);
  }
  return line + "]";
}

void Import::Note(ImportedField::Fate fate, const Value& value, std::string path,
                  std::string words) {
  out.fields.push_back({.place = value.place,
                        .path = std::move(path),
                        .value = ShortValue(value),
                        .fate = fate,
                        .words = std::move(words)});
}

void Import::Took(const Value& value, const std::string& path, const std::string& key,
                  std::string_view shown) {
  Note(ImportedField::Fate::kTaken, value, path, fmt::format("{}: {}", key, shown));
  // The template's path is the same for all that is in it.
  const auto inside = path.find("containers[");
  const auto cut = inside == std::string::npos ? inside : path.find('.', inside);
  out.sources.insert_or_assign(
      key, fmt::format("{}, line {}", cut == std::string::npos ? path : path.substr(cut + 1),
                       value.place.line));
  findings.Seen(key, value.place);
}

void Import::Option(const std::string& name, const std::string& value) {
  const auto found = std::ranges::find(out.options, name);
  if (found == out.options.end()) {
    out.options.push_back(name);
    if (!value.empty()) out.options.push_back(value);
  } else if (!value.empty()) {
    *std::next(found) = value;
  }
}

const Value* Fields::Take(std::string_view key) {
  const Value* value = keys_.Take(key);
  return value != nullptr && value->kind == Value::Kind::kNull ? nullptr : value;
}

const Value* Fields::Text(std::string_view key) {
  const Value* value = Take(key);
  if (value == nullptr || IsScalar(*value)) return value;
  Expected(*value, key, "text");
  return nullptr;
}

const Value* Fields::Whole(std::string_view key, std::uint64_t most, std::uint64_t& out) {
  const Value* value = Take(key);
  if (value == nullptr) return nullptr;
  const auto number = ToWholeText(*value);
  if (number && *number <= most) {
    out = *number;
    return value;
  }
  Expected(*value, key, fmt::format("a whole number from 0 to {}", most));
  return nullptr;
}

const Value* Fields::List(std::string_view key) {
  const Value* value = Take(key);
  if (value == nullptr || value->kind == Value::Kind::kList) return value;
  Expected(*value, key, "a list");
  return nullptr;
}

void Fields::Others(std::span<const OtherField> others) {
  for (const OtherField& other : others) {
    const Value* value = Take(other.key);
    if (value != nullptr)
      import_.Note(other.fate, *value, PathOf(other.key), std::string(other.why));
  }
}

}  // namespace muster::spec

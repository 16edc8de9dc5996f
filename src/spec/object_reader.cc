#include "spec/object_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/duration.h"
#include "base/near_miss.h"
#include "spec/units.h"

namespace muster::spec {
namespace {

constexpr std::size_t kShownText = 40;

bool IsNumber(std::string_view text) {
  // from_chars also reads "nan" and "inf", which are words to us.
  if (text.empty() || std::string_view("0123456789.-").find(text[0]) == std::string_view::npos) {
    return false;
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool IsBoolean(std::string_view text) { return text == "true" || text == "false"; }

bool IsString(const Value& value) {
  return value.kind == Value::Kind::kText ||
         (value.kind == Value::Kind::kPlain && !IsNumber(value.text) && !IsBoolean(value.text));
}

bool IsScalar(const Value& value) {
  return value.kind == Value::Kind::kText || value.kind == Value::Kind::kPlain;
}

/// Cuts long text at a character, for messages.
std::string Short(std::string_view text) {
  if (text.size() <= kShownText) return std::string(text);
  std::size_t end = kShownText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace

std::string Describe(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return "nothing";
    case Value::Kind::kPlain:
      if (IsNumber(value.text)) return fmt::format("the number {}", Short(value.text));
      if (IsBoolean(value.text)) return value.text;
      return fmt::format("'{}'", Short(value.text));
    case Value::Kind::kText:
      return fmt::format("the text '{}'", Short(value.text));
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kMap:
      return "a map";
  }
  return "nothing";
}

std::optional<std::uint64_t> ToWhole(const Value& value) {
  if (value.kind != Value::Kind::kPlain || value.text.empty()) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

ObjectReader::ObjectReader(const Value& value, std::string path, Findings& findings)
    : path_(std::move(path)), findings_(findings) {
  if (value.kind != Value::Kind::kMap) {
    findings_.Add(
        value.place, path_,
        fmt::format("expected a map{}, found {}",
                    path_.empty() ? " of keys" : " for '" + path_ + "'", Describe(value)));
    return;
  }
  map_ = &value;
  findings_.Seen(path_, value.place);
}

std::string ObjectReader::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const Value* ObjectReader::Take(std::string_view key) {
  known_.push_back(key);
  if (map_ == nullptr) return nullptr;
  const auto found = std::find_if(map_->members.begin(), map_->members.end(),
                                  [&](const Member& member) { return member.key == key; });
  if (found == map_->members.end()) return nullptr;
  findings_.Seen(PathOf(key), found->value.place);
  return &found->value;
}

void ObjectReader::Expected(const Value& value, std::string_view key, std::string_view what) {
  findings_.Add(value.place, PathOf(key),
                fmt::format("'{}' takes {}, found {}", PathOf(key), what, Describe(value)));
}

void ObjectReader::Text(std::string_view key, std::string& out) {
  const Value* value = Take(key);
  if (value == nullptr) return;
  if (IsString(*value)) {
    out = value->text;
  } else {
    Expected(*value, key, IsScalar(*value) ? "text (in quotes when it looks like this)" : "text");
  }
}

void ObjectReader::Flag(std::string_view key, bool& out) {
  const Value* value = Take(key);
  if (value == nullptr) return;
  if (value->kind == Value::Kind::kPlain && IsBoolean(value->text)) {
    out = value->text == "true";
  } else {
    Expected(*value, key, "true or false");
  }
}

std::optional<std::uint64_t> ObjectReader::ReadWhole(std::string_view key, std::uint64_t most) {
  const Value* value = Take(key);
  if (value == nullptr) return std::nullopt;
  const auto number = ToWhole(*value);
  if (number && *number <= most) return number;
  Expected(*value, key, fmt::format("a whole number from 0 to {}", most));
  return std::nullopt;
}

void ObjectReader::Whole(std::string_view key, std::uint32_t& out) {
  if (auto number = ReadWhole(key, std::numeric_limits<std::int32_t>::max())) {
    out = static_cast<std::uint32_t>(*number);
  }
}

void ObjectReader::Whole(std::string_view key, std::uint64_t& out) {
  if (auto number = ReadWhole(key, std::numeric_limits<std::int64_t>::max())) out = *number;
}

void ObjectReader::Whole(std::string_view key, std::optional<std::uint32_t>& out) {
  const Value* value = Take(key);
  if (value == nullptr) return;
  const auto number = ToWhole(*value);
  if (IsScalar(*value) && value->text == "none") {
    out.reset();
  } else if (number && *number <= std::numeric_limits<std::int32_t>::max()) {
    out = static_cast<std::uint32_t>(*number);
  } else {
    Expected(*value, key,
             fmt::format("a whole number from 0 to {}, or none",
                         std::numeric_limits<std::int32_t>::max()));
  }
}

void ObjectReader::Time(std::string_view key, Duration& out) {
  const Value* value = Take(key);
  if (value == nullptr) return;
  const auto duration =
      IsScalar(*value) ? ParseDuration(value->text) : Result<Duration>(Error(Code::kInvalid, ""));
  if (duration) {
    out = *duration;
  } else {
    Expected(*value, key, "a duration such as 90s, 30m or 2h");
  }
}

void ObjectReader::Time(std::string_view key, std::optional<Duration>& out) {
  const Value* value = Take(key);
  if (value == nullptr) return;
  if (IsScalar(*value) && value->text == "none") {
    out.reset();
    return;
  }
  const auto duration =
      IsScalar(*value) ? ParseDuration(value->text) : Result<Duration>(Error(Code::kInvalid, ""));
  if (duration) {
    out = *duration;
  } else {
    Expected(*value, key, "a duration such as 90s, 30m or 2h, or none");
  }
}

void ObjectReader::Size(std::string_view key, Bytes& out) {
  const Value* value = Take(key);
  if (value == nullptr) return;
  const auto bytes =
      IsScalar(*value) ? ParseBytes(value->text) : Result<Bytes>(Error(Code::kInvalid, ""));
  if (bytes) {
    out = *bytes;
  } else {
    Expected(*value, key, "a size such as 512MiB or 4GiB");
  }
}

void ObjectReader::Cores(std::string_view key, std::uint64_t& milli) {
  const Value* value = Take(key);
  if (value == nullptr) return;
  const auto cores = IsScalar(*value) ? ReadCores(value->text) : std::nullopt;
  if (cores) {
    milli = *cores;
  } else {
    Expected(*value, key, "a number of cores such as 2, 0.5 or 500m");
  }
}

void ObjectReader::Words(std::string_view key, std::vector<std::string>& out) {
  List(key, [&](const Value& item, const std::string& path) {
    if (IsScalar(item)) {
      out.push_back(item.text);
    } else {
      findings_.Add(item.place, path,
                    fmt::format("'{}' takes text, found {}", path, Describe(item)));
    }
  });
}

void ObjectReader::List(std::string_view key,
                        const std::function<void(const Value&, const std::string&)>& read) {
  const Value* value = Take(key);
  if (value == nullptr) return;
  if (value->kind != Value::Kind::kList) return Expected(*value, key, "a list");
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", PathOf(key), i);
    findings_.Seen(path, value->items[i].place);
    read(value->items[i], path);
  }
}

void ObjectReader::Finish() {
  if (map_ == nullptr) return;
  const std::string where = path_.empty() ? "at the top of the file" : "in " + path_;
  std::map<std::string_view, Place> seen;
  for (const Member& member : map_->members) {
    const auto [first, fresh] = seen.emplace(member.key, member.place);
    if (!fresh) {
      findings_.Add(member.place, PathOf(member.key),
                    fmt::format("key '{}' {} is there a second time; the first is in line {}",
                                Short(member.key), where, first->second.line));
      continue;
    }
    if (std::find(known_.begin(), known_.end(), member.key) != known_.end()) continue;
    const auto meant = NearMiss(member.key, known_);
    findings_.Add(member.place, PathOf(member.key),
                  fmt::format("unknown key '{}' {}{}", Short(member.key), where,
                              meant ? fmt::format(": did you mean '{}'?", *meant) : ""));
  }
}

}  // namespace muster::spec

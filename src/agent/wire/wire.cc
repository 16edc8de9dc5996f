#include "agent/wire/wire.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "agent/wire/fields.h"

namespace muster::agent::wire {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

class Writer {
 public:
  explicit Writer(Json* json) : json_(json) {}

  template <typename T>
  void operator()(const char* key, T& value) {
    (*json_)[key] = ToJson(value);
  }
  void Time(const char* key, std::int64_t& value) { (*json_)[key] = value; }
  template <typename T>
  void Enum(const char* key, T& value, std::size_t) {
    (*json_)[key] = static_cast<int>(value);
  }

 private:
  static Json ToJson(bool value) { return value; }
  template <Integer T>
  static Json ToJson(T value) {
    return value;
  }
  static Json ToJson(float value) { return std::isfinite(value) ? Json(value) : Json(); }
  static Json ToJson(const std::string& value) { return value; }
  template <typename Tag, typename T>
  static Json ToJson(StrongId<Tag, T> value) {
    return value.value();
  }
  static Json ToJson(Instant value) { return value.time_since_epoch().count(); }
  static Json ToJson(std::chrono::nanoseconds value) { return value.count(); }
  static Json ToJson(const Error& value) {
    return {{"code", TraitsOf(value.code()).name},
            {"message", value.message()},
            {"hint", value.hint()}};
  }
  template <typename T>
  static Json ToJson(std::optional<T>& value) {
    return value ? ToJson(*value) : Json();
  }
  template <typename List>
    requires requires(List& list) { list.begin() != list.end(); } &&
             (!std::same_as<std::remove_const_t<List>, std::string>)
  static Json ToJson(List& values) {
    Json list = Json::array();
    for (auto& value : values) list.push_back(ToJson(value));
    return list;
  }
  template <typename T>
    requires requires(Writer& writer, T& value) { Fields(writer, value); }
  static Json ToJson(T& value) {
    Json json = Json::object();
    Writer writer(&json);
    Fields(writer, value);
    return json;
  }

  Json* json_;
};

/// Reads fields until the first that is wrong; `wrong()` names it.
class Reader {
 public:
  Reader(const Json& json, RankRange ranks, std::chrono::nanoseconds offset)
      : json_(&json), ranks_(ranks), offset_(offset) {}

  const std::string& wrong() const { return wrong_; }

  template <typename T>
  void operator()(const char* key, T& value) {
    Take(key, [&](const Json& json) { return FromJson(json, value); });
  }
  void Time(const char* key, std::int64_t& value) {
    Take(key, [&](const Json& json) {
      Instant time;
      if (!FromJson(json, time)) return false;
      value = time.time_since_epoch().count();
      return true;
    });
  }
  template <typename T>
  void Enum(const char* key, T& value, std::size_t count) {
    Take(key, [&](const Json& json) {
      std::uint32_t number = 0;
      if (!FromJson(json, number) || number >= count) return false;
      value = static_cast<T>(number);
      return true;
    });
  }

 private:
  template <typename TakeValue>
  void Take(const char* key, const TakeValue& take) {
    if (!wrong_.empty()) return;
    const auto found = json_->find(key);
    if (found == json_->end()) {
      wrong_ = fmt::format("'{}' is missing", key);
    } else if (!take(*found) && wrong_.empty()) {
      wrong_ = fmt::format("'{}' is {}", key, found->dump().substr(0, 40));
    }
  }

  static bool FromJson(const Json& json, bool& value) {
    if (!json.is_boolean()) return false;
    value = json.get<bool>();
    return true;
  }
  template <Integer T>
  static bool FromJson(const Json& json, T& value) {
    if (json.is_number_unsigned()) {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return false;
      value = static_cast<T>(number);
      return true;
    }
    if (!json.is_number_integer() || std::is_unsigned_v<T>) return false;
    const auto number = json.get<std::int64_t>();
    if (number < static_cast<std::int64_t>(std::numeric_limits<T>::min())) return false;
    value = static_cast<T>(number);
    return true;
  }
  static bool FromJson(const Json& json, float& value) {
    if (!json.is_null() && !json.is_number()) return false;
    value = json.is_null() ? std::nanf("") : json.get<float>();
    return true;
  }
  static bool FromJson(const Json& json, std::string& value) {
    if (!json.is_string()) return false;
    value = json.get<std::string>();
    return true;
  }
  bool FromJson(const Json& json, Rank& value) const {
    std::uint32_t rank = 0;
    if (!FromJson(json, rank) || !ranks_.Has(Rank(rank))) {
      return false;
    }
    value = Rank(rank);
    return true;
  }
  static bool FromJson(const Json& json, Generation& value) {
    std::uint64_t number = 0;
    if (!FromJson(json, number)) return false;
    value = Generation(number);
    return true;
  }
  /// The beginning of time is no time.
  bool FromJson(const Json& json, Instant& value) const {
    std::int64_t number = 0;
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;
    if (!FromJson(json, number) || number < 0 || number > kMost) return false;
    value = Instant(std::chrono::nanoseconds(number));
    if (number != 0) value += offset_;
    return true;
  }
  static bool FromJson(const Json& json, std::chrono::nanoseconds& value) {
    std::int64_t number = 0;
    if (!FromJson(json, number)) return false;
    value = std::chrono::nanoseconds(number);
    return true;
  }
  static bool FromJson(const Json& json, Error& value) {
    const auto text = [&](const char* key) {
      const auto found = json.find(key);
      return found != json.end() && found->is_string() ? found->get<std::string>() : "";
    };
    if (!json.is_object()) return false;
    const auto code = CodeNamed(text("code"));
    value = Error(code.value_or(Code::kBug), text("message"), text("hint"));
    return code.has_value();
  }
  template <typename T>
  bool FromJson(const Json& json, std::optional<T>& value) {
    value.reset();
    return json.is_null() || FromJson(json, value.emplace());
  }
  template <typename T>
  bool FromJson(const Json& json, std::vector<T>& values) {
    if (!json.is_array()) return false;
    values.clear();
    for (const Json& entry : json) {
      values.emplace_back();
      if (!FromJson(entry, values.back())) return false;
    }
    return true;
  }
  template <typename T, std::size_t N>
  bool FromJson(const Json& json, std::array<T, N>& values) {
    if (!json.is_array() || json.size() != N) return false;
    for (std::size_t i = 0; i < N; ++i) {
      if (!FromJson(json[i], values[i])) return false;
    }
    return true;
  }
  template <typename T>
    requires requires(Reader& reader, T& value) { Fields(reader, value); }
  bool FromJson(const Json& json, T& value) {
    if (!json.is_object()) return false;
    Reader inner(json, ranks_, offset_);
    Fields(inner, value);
    wrong_ = inner.wrong();
    return wrong_.empty();
  }

  const Json* json_;
  RankRange ranks_;
  std::chrono::nanoseconds offset_;
  std::string wrong_;
};

template <typename Message>
std::string EncodeAs(const char* kind, const Message& message) {
  Json json = Json::object();
  std::visit(
      [&](auto copy) {
        constexpr bool kHasForm = OnWire<decltype(copy)>;
        MUSTER_CHECK(kHasForm);
        if constexpr (kHasForm) {
          json[kind] = NameOf(&copy);
          Writer writer(&json);
          Fields(writer, copy);
        }
      },
      message);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Tries every alternative of the variant by its name.
template <typename Message, std::size_t I = 0>
Result<Message> DecodeAs(const Json& json, const std::string& name, RankRange ranks,
                         std::chrono::nanoseconds offset) {
  if constexpr (I == std::variant_size_v<Message>) {
    return Error(Code::kInvalid, fmt::format("an unknown message '{}'", name.substr(0, 40)));
  } else if constexpr (!OnWire<std::variant_alternative_t<I, Message>>) {
    return DecodeAs<Message, I + 1>(json, name, ranks, offset);
  } else {
    using Type = std::variant_alternative_t<I, Message>;
    if (name != NameOf(static_cast<const Type*>(nullptr)))
      return DecodeAs<Message, I + 1>(json, name, ranks, offset);
    Type message{};
    Reader reader(json, ranks, offset);
    Fields(reader, message);
    if (reader.wrong().empty()) return Message(std::move(message));
    return Error(Code::kInvalid, fmt::format("message '{}': {}", name, reader.wrong()));
  }
}

template <typename Message>
Result<Message> Decode(const char* kind, std::string_view text, RankRange ranks,
                       std::chrono::nanoseconds offset) {
  constexpr int kDeepest = 8;
  const auto limit = [](int depth, Json::parse_event_t, Json&) { return depth <= kDeepest; };
  const Json json = Json::parse(text, limit, false);
  if (!json.is_object()) return Error(Code::kInvalid, "a message that is no JSON object");
  const auto name = json.find(kind);
  if (name == json.end() || !name->is_string()) {
    return Error(Code::kInvalid, fmt::format("a message without '{}'", kind));
  }
  return DecodeAs<Message>(json, name->get<std::string>(), ranks, offset);
}

}  // namespace

std::string Encode(const Order& order) { return EncodeAs("order", order); }
std::string Encode(const Report& report) { return EncodeAs("report", report); }

Result<Order> DecodeOrder(std::string_view text, RankRange ranks) {
  return Decode<Order>("order", text, ranks, {});
}

Result<Report> DecodeReport(std::string_view text, RankRange ranks,
                            std::chrono::nanoseconds offset) {
  return Decode<Report>("report", text, ranks, offset);
}

}  // namespace muster::agent::wire

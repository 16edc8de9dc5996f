#include "data/layout/hf_dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <regex>
#include <string_view>

namespace muster::data {
namespace {

using arrow::Field;
using arrow::TypeId;

constexpr std::size_t kLongest = 100;  // std::regex recurses

struct Plain {
  std::string_view name;
  TypeId type;
};
constexpr std::array<Plain, 9> kPlain{{{"null", TypeId::kNull},
                                       {"bool", TypeId::kBool},
                                       {"bool_", TypeId::kBool},
                                       {"string", TypeId::kUtf8},
                                       {"utf8", TypeId::kUtf8},
                                       {"large_string", TypeId::kLargeUtf8},
                                       {"large_utf8", TypeId::kLargeUtf8},
                                       {"binary", TypeId::kBinary},
                                       {"large_binary", TypeId::kLargeBinary}}};

/// Of types that are written without a parameter, those outside arrow/type.h.
constexpr std::array<std::string_view, 7> kOther{
    "date32", "date64", "string_view", "binary_view", "month_day_nano_interval", "uuid", "bool8"};

std::optional<Field> Number(std::string_view dtype) {
  for (const int bits : {8, 16, 32, 64}) {
    for (const bool is_signed : {true, false}) {
      if (dtype != fmt::format("{}int{}", is_signed ? "" : "u", bits)) continue;
      return Field{.type = TypeId::kInt, .is_signed = is_signed, .bit_width = bits};
    }
  }
  if (dtype == "float16") return Field{.type = TypeId::kFloat, .bit_width = 16};
  if (dtype == "float32") return Field{.type = TypeId::kFloat, .bit_width = 32};
  if (dtype == "float64") return Field{.type = TypeId::kFloat, .bit_width = 64};
  return std::nullopt;
}

int Int(const std::string& digits) {
  int value = -1;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return failed == std::errc() && end == digits.data() + digits.size() ? value : -1;
}

/// A type that is written with a parameter.
std::optional<Field> WithParameter(const std::string& dtype) {
  static const std::regex kTimes(
      R"((timestamp\[(s|ms|us|ns)(,\s*tz=[a-zA-Z0-9/_+\-:]*)?\])|(duration\[(s|ms|us|ns)\])|(time32\[m?s\])|(time64\[[un]s\]))");
  static const std::regex kDecimal(R"(decimal(128|256)\((\d+),\s*(-?\d+)\))");
  static const std::regex kFixed(R"(fixed_size_binary\[(\d+)\])");
  if (dtype.size() > kLongest) return std::nullopt;
  std::smatch found;
  if (std::regex_match(dtype, kTimes)) return Field{.extension = dtype};
  if (std::regex_match(dtype, found, kDecimal)) {
    const int digits = Int(found[2]), most = found[1] == "128" ? 38 : 76;
    if (digits >= 1 && digits <= most) return Field{.extension = dtype};
  }
  if (std::regex_match(dtype, found, kFixed) && Int(found[1]) >= 0) {
    return Field{.type = TypeId::kFixedSizeBinary, .fixed_size = Int(found[1])};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Field> TypeOfDtype(const std::string& dtype) {
  const auto plain = std::ranges::find(kPlain, std::string_view(dtype), &Plain::name);
  if (plain != kPlain.end()) return Field{.type = plain->type};
  if (auto number = Number(dtype)) return number;
  if (std::ranges::find(kOther, std::string_view(dtype)) != kOther.end()) {
    return Field{.extension = "arrow." + dtype};
  }
  return WithParameter(dtype);
}

}  // namespace muster::data

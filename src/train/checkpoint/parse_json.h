#pragma once
// JSON from a file that may be hostile: bounded in size and depth before a parser sees it, and no
// exception comes out.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::checkpoint {

struct JsonLimits {
  std::size_t bytes = 64u << 20;
  int depth = 32;
};

/// An object, or DataLoss naming the byte where it breaks.
Result<nlohmann::json> ParseJsonObject(std::string_view text, const JsonLimits& limits);

/// Field `key` as an unsigned integer at most `limit`; DataLoss naming `where` and the key.
Result<std::uint64_t> Unsigned(const nlohmann::json& object, const char* key, std::uint64_t limit,
                               std::string_view where);
/// Field `key` as a string of at most `limit` bytes.
Result<std::string> Text(const nlohmann::json& object, const char* key, std::size_t limit,
                         std::string_view where);
/// Field `key` as an object or an array (`kind`), borrowed.
Result<const nlohmann::json*> Member(const nlohmann::json& object, const char* key,
                                     std::string_view kind, std::string_view where);

}  // namespace muster::checkpoint

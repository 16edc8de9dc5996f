#pragma once
// The tree behind a job file, whether it was written as YAML or JSON, with the place of every value
// for errors. yaml-cpp and nlohmann-json are each hidden in the one .cc that reads their format;
// both meet the same limits, so that a small file cannot become a large tree (aliases are copied
// and counted). Values; pure.
//
// Scalars keep their text: what "2" is (a number, a name) is for the reader of a key to say.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace muster::spec {

/// 1-based; 0 when a value was not read from a text.
struct Place {
  std::uint32_t line = 0;
  std::uint32_t column = 0;  ///< in bytes
  auto operator<=>(const Place&) const = default;
};

struct Member;

struct Value {
  enum class Kind {
    kNull,
    kPlain,  ///< unquoted text: a number, a boolean or a word
    kText,   ///< a quoted string
    kList,
    kMap
  };
  Kind kind = Kind::kNull;
  Place place;
  std::string text;  ///< kPlain, kText
  std::vector<Value> items;
  std::vector<Member> members;  ///< in file order; a key may be there twice, see `Member::place`
};

struct Member {
  std::string key;
  Place place;
  Value value;
  std::string comment;  ///< for PrintYaml
};

struct DocumentLimits {
  Bytes bytes = 256_KiB;
  std::size_t depth = 24;
  std::size_t values = 20'000;
};

enum class Syntax { kYaml, kJson };

/// One document. Invalid, as "file:line:column: what", when it is malformed, too large, not UTF-8,
/// or more than one document.
Result<Value> ReadDocument(std::string_view text, Syntax syntax, std::string_view file,
                           const DocumentLimits& limits = {});

/// Block style, two spaces, lists of short scalars on one line; quoted where plain text would read
/// back as something else. Ends with a newline.
std::string PrintYaml(const Value& document);
/// Indented by two. A kPlain value must be a JSON number or boolean.
std::string PrintJson(const Value& document);

/// "file:line:column: message".
std::string AtPlace(std::string_view file, Place place, std::string_view message);

}  // namespace muster::spec

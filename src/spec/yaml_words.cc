#include "spec/yaml_words.h"

#include <fmt/format.h>
#include <yaml-cpp/exceptions.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace muster::spec {
namespace {

constexpr std::size_t kMostShown = 100;

struct Words {
  std::string_view theirs;  ///< how their message begins
  std::string_view ours;
};

constexpr std::string_view kIndent =
    "this line does not fit what stands above it: the keys of one map begin in one column, and so "
    "do the items of one list, each with '- '";
constexpr std::string_view kAlias =
    "'*' stands for a value that was marked with '&NAME' above, and there is none; put text that "
    "begins with '*' in quotes";
constexpr std::string_view kAnchor =
    "'&' marks a value with a name, and none follows; put text that begins with '&' in quotes";
constexpr std::string_view kTag =
    "'!' begins a tag, which a job file does not need; put text that begins with '!' in quotes";

const std::array kWords{
    Words{YAML::ErrorMsg::END_OF_MAP_FLOW,
          "a '{' above is not closed with '}', or a ',' is missing"},
    Words{YAML::ErrorMsg::END_OF_SEQ_FLOW,
          "a '[' above is not closed with ']', or a ',' is missing"},
    Words{YAML::ErrorMsg::END_OF_MAP, kIndent},
    Words{YAML::ErrorMsg::END_OF_SEQ, kIndent},
    Words{YAML::ErrorMsg::FLOW_END, "this bracket closes nothing that is open"},
    Words{YAML::ErrorMsg::BLOCK_ENTRY,
          "a list cannot begin here: give each '- ' a line of its own"},
    Words{YAML::ErrorMsg::MAP_KEY, "a key cannot stand here"},
    Words{
        YAML::ErrorMsg::MAP_VALUE,
        "this ':' begins a value where none can stand: text with ': ' in it needs quotes, and the "
        "line above must be complete"},
    Words{YAML::ErrorMsg::UNKNOWN_TOKEN,
          "no value begins with this character: put the text in quotes"},
    Words{YAML::ErrorMsg::EOF_IN_SCALAR, "the file ends inside of a quoted text"},
    Words{YAML::ErrorMsg::DOC_IN_SCALAR, "the document ends inside of a quoted text"},
    Words{YAML::ErrorMsg::CHAR_IN_BLOCK,
          "behind '|' or '>' only '+', '-' or a digit may stand; the text begins in the next line"},
    Words{YAML::ErrorMsg::INVALID_ESCAPE,
          "in double quotes a backslash begins an escape, and this is none: double it, or use "
          "single quotes"},
    Words{YAML::ErrorMsg::INVALID_HEX, "the digits of this escape are not hexadecimal"},
    Words{YAML::ErrorMsg::INVALID_UNICODE, "this escape names no Unicode character"},
    Words{YAML::ErrorMsg::UNKNOWN_ANCHOR, kAlias},
    Words{YAML::ErrorMsg::ALIAS_NOT_FOUND, kAlias},
    Words{YAML::ErrorMsg::CHAR_IN_ALIAS, kAlias},
    Words{YAML::ErrorMsg::ANCHOR_NOT_FOUND, kAnchor},
    Words{YAML::ErrorMsg::CHAR_IN_ANCHOR, kAnchor},
    Words{YAML::ErrorMsg::CHAR_IN_TAG_HANDLE, kTag},
    Words{YAML::ErrorMsg::TAG_WITH_NO_SUFFIX, kTag},
    Words{YAML::ErrorMsg::END_OF_VERBATIM_TAG, kTag},
};

std::optional<std::string_view> LineAt(std::string_view text, std::uint32_t number) {
  for (std::uint32_t line = 1; line < number; ++line) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  return number == 0 ? std::nullopt : std::optional(text.substr(0, text.find('\n')));
}

bool IsIndentedWithTab(std::string_view line) {
  return line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

}  // namespace

std::string YamlWords(std::string_view complaint, std::string_view text, Place place) {
  const std::string_view line = LineAt(text, place.line).value_or("");
  if (IsIndentedWithTab(line) || complaint == YAML::ErrorMsg::TAB_IN_INDENTATION)
    return "this line is indented with a tab; YAML takes blanks only";
  for (const Words& words : kWords) {
    if (complaint.starts_with(words.theirs)) return std::string(words.ours);
  }
  return fmt::format("this cannot be read as YAML ({})", complaint);
}

Place PlaceOfFault(std::string_view text, Place place) {
  const std::string_view line = LineAt(text, place.line).value_or("");
  if (!IsIndentedWithTab(line)) return place;
  return {place.line, static_cast<std::uint32_t>(line.find('\t') + 1)};
}

std::string Excerpt(std::string_view text, Place place) {
  const auto found = LineAt(text, place.line);
  if (!found || place.column == 0 || place.column > kMostShown) return "";
  const std::string line = PlainLine(CutText(*found, kMostShown));
  const std::string_view before = found->substr(0, place.column - 1);
  // Columns count bytes; what continues a character has no width.
  const auto width = std::ranges::count_if(
      before, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  const std::string number = std::to_string(place.line);
  return fmt::format("\n  {} | {}\n  {:{}} | {:{}}^", number, line, "", number.size(), "", width);
}

}  // namespace muster::spec

#include "spec/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace muster::spec {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kWidestNames = 28;  // longer names have a line of their own
constexpr std::size_t kNarrowest = 60;
constexpr std::size_t kWidest = 100;

/// Characters of UTF-8 text: bytes that begin one.
std::size_t Columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/// Breaks between words; every line but the first is indented by `indent`, which the first one
/// already has.
std::string Wrap(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  for (const std::string& word : WordsOf(text)) {
    const std::size_t long_is = Columns(word);
    if (column > indent && column + 1 + long_is > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += " ";
      ++column;
    }
    out += word;
    column += long_is;
  }
  return out;
}

/// Prose is filled; empty lines, indented ones and commands (they begin with `program`) stay as
/// they were written.
std::string Fill(std::string_view text, std::string_view program, std::size_t width) {
  std::string out;
  std::string prose;
  const auto end_prose = [&] {
    if (!prose.empty()) out += Wrap(std::exchange(prose, {}), 0, width) + "\n";
  };
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const bool command = line.starts_with(std::string(program) + " ");
    if (line.empty() || line[0] == ' ' || command) {
      end_prose();
      out += std::string(line) + "\n";
    } else {
      prose += (prose.empty() ? "" : " ") + std::string(line);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  end_prose();
  return out;
}

struct Row {
  std::string names;
  std::string text;
};

/// A heading and its rows in two columns; nothing without rows.
std::string Table(std::string_view heading, const std::vector<Row>& rows, std::size_t width) {
  if (rows.empty()) return {};
  std::size_t names = 0;
  for (const Row& row : rows) {
    const std::size_t columns = Columns(row.names);
    if (columns <= kWidestNames) names = std::max(names, columns);
  }
  const std::size_t indent = kIndent + names + 2;
  std::string out = fmt::format("\n{}:\n", heading);
  for (const Row& row : rows) {
    const std::size_t columns = Columns(row.names);
    out += std::string(kIndent, ' ') + row.names;
    const std::string gap =
        columns <= names ? std::string(names + 2 - columns, ' ') : "\n" + std::string(indent, ' ');
    if (!row.text.empty()) out += gap + Wrap(row.text, indent, width);
    out += "\n";
  }
  return out;
}

/// CLI11 has a type and what is taken in one text: "TEXT:{auto,idx}", "UINT:from 0 to 256".
struct ValueType {
  std::string shown;               ///< "N"
  std::string taken;               ///< "from 0 to 256", or "auto or idx"
  std::vector<std::string> words;  ///< each, where only some are taken
};

std::string JoinedByOr(const std::vector<std::string>& words) {
  const std::vector<std::string> first(words.begin(), words.end() - 1);
  return fmt::format("{} or {}", fmt::join(first, ", "), words.back());
}

ValueType TypeOf(const CLI::Option& option) {
  ValueType type;
  const std::string whole = option.get_type_name();
  const auto colon = whole.find(':');
  type.shown = whole.substr(0, colon);
  if (type.shown == "UINT" || type.shown == "INT") type.shown = "N";
  if (type.shown == "FLOAT") type.shown = "NUMBER";
  const bool plain = whole.starts_with("TEXT") || type.shown != whole.substr(0, colon);
  if (!plain) type.shown = whole;  // a name of its own: HOST:PORT
  if (colon == std::string::npos || !plain) return type;
  type.taken = whole.substr(colon + 1);
  if (!type.taken.starts_with('{') || !type.taken.ends_with('}')) return type;
  std::string set = type.taken.substr(1, type.taken.size() - 2);
  std::ranges::replace(set, ',', ' ');
  type.words = WordsOf(set);
  type.shown = "WORD";
  type.taken = type.words.size() > 1 ? JoinedByOr(type.words) : set;
  return type;
}

/// Whether the description says itself which words are taken.
bool Tells(const std::string& description, const std::vector<std::string>& words) {
  return !words.empty() && std::ranges::all_of(words, [&description](const std::string& word) {
    return description.find(word) != std::string::npos;
  });
}

std::string NamesOf(const CLI::Option& option, const ValueType& type) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  const bool takes = option.get_items_expected_max() > 0;
  return fmt::format("{}{}{}", fmt::join(names, ", "), takes ? " " : "", takes ? type.shown : "");
}

/// "What INPUT is: auto, idx or images (default: auto)"
std::string Explained(const CLI::Option& option, const ValueType& type) {
  std::string text = option.get_description();
  std::vector<std::string> more;
  if (!type.taken.empty() && !Tells(text, type.words)) more.push_back(type.taken);
  if (!option.get_default_str().empty()) more.push_back("default: " + option.get_default_str());
  for (const CLI::Option* other : option.get_excludes()) {
    more.push_back("not with " + other->get_name());
  }
  if (!more.empty()) text += fmt::format(" ({})", fmt::join(more, "; "));
  return text;
}

std::string UsageLine(const CLI::App& app, std::string_view command,
                      const std::string& subcommand) {
  std::string usage = fmt::format("Usage: {} [OPTIONS]", command);
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const bool many = option->get_items_expected_max() > 1;
    const std::string name = option->get_name() + (many ? "..." : "");
    usage += option->get_required() ? " " + name : " [" + name + "]";
  }
  return usage + (subcommand.empty() ? "" : " " + subcommand) + "\n";
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

/// "muster help data VERB", from "muster data".
std::string HelpCommand(std::string_view command, std::string_view kind) {
  const auto blank = command.find(' ');
  const std::string_view below = blank == std::string_view::npos ? "" : command.substr(blank);
  return fmt::format("{} help{} {}", command.substr(0, blank), below, Upper(kind));
}

}  // namespace

std::string HelpText(const CLI::App& app, std::string_view command, const HelpLayout& layout) {
  std::vector<Row> arguments;
  std::vector<Row> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    const ValueType type = TypeOf(*option);
    if (option->get_positional()) {
      arguments.push_back({option->get_name(), Explained(*option, type)});
    } else {
      options.push_back({NamesOf(*option, type), Explained(*option, type)});
    }
  }
  std::vector<Row> below;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    below.push_back({sub->get_name(), sub->get_description()});
  }
  const std::string_view program = command.substr(0, command.find(' '));
  std::string text = Fill(app.get_description(), program, layout.width);
  text += UsageLine(app, command, below.empty() ? "" : Upper(layout.kind));
  text += Table("Arguments", arguments, layout.width);
  text += Table("Options", options, layout.width);
  std::string heading = Upper(layout.kind.substr(0, 1)) + std::string(layout.kind.substr(1)) + "s";
  text += Table(heading, below, layout.width);
  if (!below.empty()) {
    text += fmt::format("\n{} explains one.\n", HelpCommand(command, layout.kind));
  }
  if (!app.get_footer().empty()) text += "\n" + Fill(app.get_footer(), program, layout.width);
  return text;
}

std::size_t HelpWidth() {
  constexpr std::size_t kElsewhere = 80;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kElsewhere;
  return std::clamp<std::size_t>(size.ws_col, kNarrowest, kWidest);
}

}  // namespace muster::spec

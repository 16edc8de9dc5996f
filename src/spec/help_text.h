#pragma once
// The help of a program, a verb or a recipe, in our own layout: wrapped to the terminal, with what
// a value may be, its default and what it excludes in words. Reads the declared options of a CLI11
// app; pure. Part of the library `command_line`.

#include <cstddef>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace muster::spec {

struct HelpLayout {
  std::string_view kind;   ///< of a subcommand: "verb", "recipe"
  std::size_t width = 80;  ///< characters in a line; only a word that is longer goes beyond
};

/// `command`: what leads to the app, its own name included: "muster data pack".
std::string HelpText(const CLI::App& app, std::string_view command, const HelpLayout& layout);

/// Characters in a line of stdout: a terminal's, between 60 and 100; 80 where it is none.
std::size_t HelpWidth();

}  // namespace muster::spec

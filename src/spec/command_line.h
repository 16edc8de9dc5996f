#pragma once
// From the words of a command line to the flags of a CLI11 app, with errors in our own words: every
// program of ours has verbs (or recipes) below its name, options and arguments behind them, and
// says of a word that it does not know which one was meant. What CLI11 finds itself is left to it
// only where it speaks plainly. A library of its own, `command_line`. One thread.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace muster::spec {

/// Parses `words` (without the program's name) into `app`, whose subcommands are each a `kind`:
/// "verb", "recipe". Returns the text to print instead of acting, where help is asked for: by
/// --help, or by the word `help` in the place of a subcommand ("help data pack", "data help pack").
/// Invalid for what nobody can parse; its hint is the next thing to type.
Result<std::optional<std::string>> ParseCommandLine(CLI::App& app,
                                                    const std::vector<std::string>& words,
                                                    std::string_view kind);

/// Whether --version is among the words before the first verb.
bool AsksForVersion(const std::vector<std::string>& words);

}  // namespace muster::spec

#pragma once
// How a verb of the command line plugs in: one file per verb defines `AddXxx`, which puts a
// subcommand with its flags under `parent` and stores what to do in `invocation.action`; verbs.cc
// lists them. main.cc parses, runs the action and turns its Status into the exit code, so a verb
// only returns errors.
//
// The contract for every verb: stdout is data only; progress, notes and errors go to stderr; with
// --json, stdout is one JSON document in success, empty and error cases; colour and progress bars
// on a terminal only. Single-threaded.

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "spec/torchrun/line.h"

namespace CLI {
class App;
}

namespace muster::cli {

struct Invocation {
  bool json = false;
  std::string
      program;  ///< absolute path of this binary, to find muster-shim and muster-train beside it
  spec::torchrun::RunLine line;  ///< of `run`: torchrun's flags, and what is to be run
  /// Set by the subcommand that was chosen. The value is the process's exit code (0 unless the verb
  /// has its own, like `run`).
  std::function<Result<int>()> action;
};

/// Adds a subcommand that has --json and help in the house's layout.
CLI::App* AddSubcommand(CLI::App& parent, std::string_view name, std::string_view summary,
                        Invocation& invocation);

/// Writes data to stdout as it is, whole: JSON. A closed pipe ends quietly, another failure is an
/// error.
Status Print(std::string_view text);
/// Writes lines for people to stdout, as Print does, but nothing that drives a terminal: names and
/// messages come from files. A value that must not break its line goes through PlainLine before.
Status PrintText(std::string_view text);
/// The same to stderr: notes and errors.
void Note(std::string_view text);

/// The error on stderr, and as the one document of --json on stdout.
void PrintError(const Error& error, bool json);

/// Absolute path of this binary.
std::string ProgramPath();

/// Parses, runs, reports; returns the exit code. `argv` as main() gets it.
int Main(int argc, char** argv);

/// Every verb, in the order of the help.
void AddVerbs(CLI::App& app, Invocation& invocation);

}  // namespace muster::cli

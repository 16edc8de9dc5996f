#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/verb.h"
#include "spec/near_miss.h"

namespace muster::cli {
namespace {

constexpr std::string_view kVersion = MUSTER_VERSION;

constexpr std::string_view kOverview =
    R"(Muster runs training jobs to the end, on anyone's machines.

  muster data pack INPUT OUT    turn images into a verified dataset
  muster run job.yaml           train; if a rank dies, the run goes on
  muster run -n 2 -- CMD        the same for any command, e.g. python train.py
  muster report RUN             what happened, as one HTML page
  muster ckpt digest DIR        what a checkpoint holds, as one number

muster help lists every verb, muster help VERB explains one.
)";

std::string ProgramPath() {
  std::array<char, 4096> path{};
  const auto n = ::readlink("/proc/self/exe", path.data(), path.size());
  return n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : std::string("muster");
}

/// Lines stay, a return must not rewrite what was printed before it.
std::string ForTerminal(std::string_view text) {
  std::string lines(text);
  std::ranges::replace(lines, '\r', ' ');
  return PlainText(lines);
}

/// `muster help a b` is `muster a b --help`.
std::vector<std::string> RewriteHelp(std::vector<std::string> words) {
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  words.push_back("--help");
  return words;
}

/// Known before parsing, so that usage errors are JSON too. What follows `--` is another program's.
bool WantsJson(const std::vector<std::string>& words) {
  const auto end = std::ranges::find(words, "--");
  return std::find(words.begin(), end, "--json") != end;
}

std::vector<std::string_view> VerbsOf(const CLI::App& app) {
  std::vector<std::string_view> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

/// Of an unknown or missing verb CLI11 says only that a subcommand is required.
Status CheckVerbs(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* app = &root;
  std::string path = "muster";
  for (auto word = words.begin(); !VerbsOf(*app).empty(); ++word) {
    const std::vector<std::string_view> verbs = VerbsOf(*app);
    if (word == words.end()) {
      return Error(Code::kInvalid, path + " needs a verb",
                   fmt::format("one of {}", fmt::join(verbs, ", ")));
    }
    if (word->starts_with("-")) return Ok();
    if (std::ranges::find(verbs, *word) == verbs.end()) {
      const auto meant = spec::NearMiss(*word, verbs);
      return Error(Code::kInvalid, fmt::format("{} has no verb '{}'", path, *word),
                   meant ? fmt::format("did you mean '{} {}'?", path, *meant)
                         : fmt::format("it has {}", fmt::join(verbs, ", ")));
    }
    app = app->get_subcommand(*word);
    path += " " + *word;
  }
  return Ok();
}

/// The longest "muster a b" of verbs that the words begin with, for the hint of a usage error.
std::string HelpFor(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* app = &root;
  std::string command = "muster help";
  for (const std::string& word : words) {
    const std::vector<std::string_view> verbs = VerbsOf(*app);
    if (std::ranges::find(verbs, word) == verbs.end()) break;
    app = app->get_subcommand(word);
    command += " " + word;
  }
  return command;
}

int Fail(const Error& error, bool json) {
  PrintError(error, json);
  return TraitsOf(error.code()).exit_code;
}

}  // namespace

CLI::App* AddSubcommand(CLI::App& parent, std::string_view name, std::string_view summary,
                        Invocation& invocation) {
  CLI::App* app = parent.add_subcommand(std::string(name), std::string(summary));
  app->add_flag("--json", invocation.json, "One JSON document on stdout, errors included");
  app->fallthrough(false);
  return app;
}

Status Print(std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE) return Ok();
    if (n < 0 && errno == EBADF) return Error(Code::kPrecondition, "write to stdout: it is closed");
    if (n < 0) return ErrnoError("write to stdout", errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return Ok();
}

void PrintError(const Error& error, bool json) {
  if (json) {
    const nlohmann::json document = {{"error",
                                      {{"code", TraitsOf(error.code()).name},
                                       {"message", error.message()},
                                       {"hint", error.hint()}}}};
    // Invalid UTF-8 in a path must not turn an error into an exception.
    const std::string text =
        document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    [[maybe_unused]] const Status printed = Print(text);
  }
  Note(fmt::format("muster: {}\n", error.message()));
  if (!error.hint().empty()) Note(fmt::format("  {}\n", error.hint()));
}

Status PrintText(std::string_view text) { return Print(ForTerminal(text)); }

void Note(std::string_view text) {
  const std::string plain = ForTerminal(text);
  std::fwrite(plain.data(), 1, plain.size(), stderr);
}

int Main(int argc, char** argv) {
  const std::vector<std::string> words = RewriteHelp({argv + 1, argv + argc});
  if (words.empty()) return Print(kOverview) ? 0 : 1;
  const bool json = WantsJson(words);
  Invocation invocation{.json = json, .program = ProgramPath()};
  CLI::App app("Muster runs training jobs to the end, on anyone's machines.", "muster");
  app.set_version_flag("--version", std::string(kVersion));
  app.require_subcommand(1);
  AddVerbs(app, invocation);
  if (const Status known = CheckVerbs(app, words); !known) return Fail(known.error(), json);
  try {
    // CLI11 takes the arguments from the back.
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const std::string hint = fmt::format("run '{}' for the flags", HelpFor(app, words));
    return Fail(Error(Code::kInvalid, error.what(), hint), json);
  }
  const Result<int> result = invocation.action();
  return result ? *result : Fail(result.error(), invocation.json);
}

}  // namespace muster::cli

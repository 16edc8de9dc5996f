#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "cli/verb.h"

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
  fmt::print(stderr, "muster: {}\n", error.message());
  if (!error.hint().empty()) fmt::print(stderr, "  {}\n", error.hint());
}

/// `muster help a b` is `muster a b --help`.
std::vector<std::string> RewriteHelp(std::vector<std::string> words) {
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  words.push_back("--help");
  return words;
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
    if (n < 0) return ErrnoError("write to stdout", errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return Ok();
}

int Main(int argc, char** argv) {
  std::vector<std::string> words = RewriteHelp({argv + 1, argv + argc});
  if (words.empty()) {
    return Print(kOverview) ? 0 : 1;
  }
  Invocation invocation{.program = ProgramPath()};
  CLI::App app("Muster runs training jobs to the end, on anyone's machines.", "muster");
  app.set_version_flag("--version", std::string(kVersion));
  app.require_subcommand(1);
  AddVerbs(app, invocation);
  std::reverse(words.begin(), words.end());  // CLI11 takes the arguments from the back
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
    PrintError(
        Error(Code::kInvalid, error.what(), "run 'muster help' for the verbs and their flags"),
        json);
    return TraitsOf(Code::kInvalid).exit_code;
  }
  const Result<int> result = invocation.action();
  if (result) return *result;
  PrintError(result.error(), invocation.json);
  return TraitsOf(result.error().code()).exit_code;
}

}  // namespace muster::cli

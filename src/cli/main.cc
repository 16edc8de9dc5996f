#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/version.h"
#include "base/write_all.h"
#include "cli/pages.h"
#include "cli/run_line.h"
#include "cli/verb.h"
#include "spec/command_line.h"

namespace muster::cli {
namespace {

constexpr std::string_view kHelpText = "Print this help and exit";
constexpr std::string_view kJsonText = "One JSON document on stdout, errors included";

constexpr std::string_view kOverview =
    R"(Muster runs training jobs to the end, on anyone's machines.

  muster data pack INPUT OUT    turn images into a verified dataset
  muster run job.yaml           train; if a rank dies, the run goes on
  muster run -n 2 train.py      the same for a Python script, as under torchrun
  muster run -n 2 -- CMD        the same for any command
  muster top                    how the ranks of the run stand, as it goes on
  muster logs RUN -f            what they write, merged
  muster report RUN             what happened, as one HTML page
  muster ckpt digest DIR        what a checkpoint holds, as one number

muster help lists every verb, muster help VERB explains one.
)";

/// Lines stay, a return must not rewrite what was printed before it.
std::string ForTerminal(std::string_view text) {
  std::string lines(text);
  std::ranges::replace(lines, '\r', ' ');
  return PlainText(lines);
}

/// Known before parsing, so that usage errors are JSON too. What follows `--` is another program's.
bool WantsJson(const std::vector<std::string>& words) {
  const auto end = std::ranges::find(words, "--");
  return std::find(words.begin(), end, "--json") != end;
}

/// What was asked for instead of an action: as it is, or as the one document of --json.
int Tell(std::string_view name, const std::string& text, bool json) {
  const nlohmann::json document = {{name, text}};
  return Print(json ? document.dump() + "\n" : text) ? 0 : 1;
}

int Fail(const Error& error, bool json) {
  PrintError(error, json);
  return TraitsOf(error.code()).exit_code;
}

}  // namespace

std::string ProgramPath() {
  std::array<char, 4096> path{};
  const auto n = ::readlink("/proc/self/exe", path.data(), path.size());
  return n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : std::string("muster");
}

CLI::App* AddSubcommand(CLI::App& parent, std::string_view name, std::string_view summary,
                        Invocation& invocation) {
  CLI::App* app = parent.add_subcommand(std::string(name), std::string(summary));
  app->add_flag("--json", invocation.json, std::string(kJsonText));
  app->fallthrough(false);
  return app;
}

Status Print(std::string_view text) {
  const Written written = WriteAll(STDOUT_FILENO, AsBytes(text));
  if (written.error == 0 || written.error == EPIPE) return Ok();
  if (written.error == EBADF) return Error(Code::kPrecondition, "write to stdout: it is closed");
  return ErrnoError("write to stdout", written.error);
}

void PrintError(const Error& error, bool json) {
  const std::string hint = WithPages(error.hint());
  if (json) {
    const nlohmann::json document = {
        {"error",
         {{"code", TraitsOf(error.code()).name}, {"message", error.message()}, {"hint", hint}}}};
    // Invalid UTF-8 in a path must not turn an error into an exception.
    const std::string text =
        document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    [[maybe_unused]] const Status printed = Print(text);
  }
  Note(fmt::format("muster: {}\n", error.message()));
  if (!hint.empty()) Note(fmt::format("  {}\n", hint));
}

Status PrintText(std::string_view text) { return Print(ForTerminal(text)); }

void Note(std::string_view text) {
  const std::string plain = ForTerminal(text);
  std::fwrite(plain.data(), 1, plain.size(), stderr);
}

int Main(int argc, char** argv) {
  const std::vector<std::string> typed(argv + 1, argv + argc);
  if (typed.empty()) return Print(kOverview) ? 0 : 1;
  Invocation invocation{.program = ProgramPath()};
  CLI::App app("Muster runs training jobs to the end, on anyone's machines.", "muster");
  app.set_help_flag("-h,--help", std::string(kHelpText));
  app.add_flag("--json", invocation.json, std::string(kJsonText));
  bool version = false;
  app.add_flag("--version", version, "Print the version and exit");
  app.require_subcommand(1);
  AddVerbs(app, invocation);
  const auto words = TakeRunLine(app, typed, invocation);
  const bool json = WantsJson(words ? *words : typed);
  if (!words) return Fail(words.error(), json);
  if (spec::AsksForVersion(*words)) {
    return Tell("version", std::string(Version()) + (json ? "" : "\n"), json);
  }
  invocation.json = json;
  const auto told = spec::ParseCommandLine(app, *words, "verb");
  if (!told) return Fail(told.error(), json);
  if (*told) return Tell("help", WithPages(**told), json);
  const Result<int> result = invocation.action();
  return result ? *result : Fail(result.error(), invocation.json);
}

}  // namespace muster::cli

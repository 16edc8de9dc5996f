#include "cli/run_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <span>

#include "cli/run_flags.h"
#include "profile/report/go_on.h"
#include "spec/torchrun/line.h"

namespace muster::cli {
namespace {

namespace torchrun = spec::torchrun;

/// The options of `run` that are not torchrun's.
std::vector<torchrun::OwnOption> OwnOptions(const CLI::App& run) {
  std::vector<torchrun::OwnOption> own;
  for (const CLI::Option* option : run.get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    for (const std::string& name : option->get_lnames()) {
      const bool theirs = std::ranges::any_of(
          torchrun::Flags(), [&](const torchrun::Flag& flag) { return flag.name == name; });
      if (!theirs) own.push_back({name, takes_value});
    }
    for (const std::string& name : option->get_snames()) own.push_back({name, takes_value});
  }
  return own;
}

bool IsVerb(const CLI::App& app, const std::string& word) {
  const auto is_it = [&](const CLI::App* verb) { return verb->get_name() == word; };
  return word == "help" || !app.get_subcommands(is_it).empty();
}

/// A job file or a program, not a verb that is spelled wrong.
bool IsToBeRun(const std::string& word) {
  std::error_code ignored;
  return torchrun::IsJobFileName(word) || word.ends_with(".py") || word == "torchrun" ||
         word.starts_with("python") || std::filesystem::is_regular_file(word, ignored);
}

/// "muster train.py", "muster -n 2 train.py": the command line of a run without its verb.
Status CheckForVerb(const CLI::App& app, const std::vector<std::string>& words,
                    std::span<const torchrun::OwnOption> own) {
  if (std::ranges::any_of(words, [&](const std::string& word) { return IsVerb(app, word); }))
    return Ok();
  const auto line = torchrun::SplitRunLine(words, own);
  if (!line || line->words.empty()) return Ok();
  if (line->form != torchrun::RunLine::Form::kCommand && !IsToBeRun(line->words[0])) return Ok();
  std::string meant = "muster run";
  // What torchrun takes, muster run takes too.
  const std::size_t first = words[0] == "torchrun" ? 1 : 0;
  for (const std::string& word : std::span(words).subspan(first))
    meant += " " + profile::ShellWord(word);
  return Error(Code::kInvalid, fmt::format("there is no verb in front of '{}'", words[0]),
               fmt::format("to run it: {}", meant));
}

}  // namespace

Result<std::vector<std::string>> TakeRunLine(const CLI::App& app, std::vector<std::string> words,
                                             Invocation& invocation) {
  const auto own = OwnOptions(*app.get_subcommand("run"));
  const auto verb =
      std::ranges::find_if(words, [](const std::string& word) { return !word.starts_with('-'); });
  if (verb == words.end() || *verb != "run") {
    MUSTER_TRY(CheckForVerb(app, words, own));
    return words;
  }
  invocation.line = MUSTER_TRY(torchrun::SplitRunLine(std::span(verb + 1, words.end()), own));
  std::vector<std::string> left(words.begin(), verb + 1);
  left.insert(left.end(), invocation.line.own.begin(), invocation.line.own.end());
  if (!invocation.line.words.empty()) {
    left.emplace_back("--");
    left.insert(left.end(), invocation.line.words.begin(), invocation.line.words.end());
  }
  return left;
}

Result<RunFlags> ReadRunWords(const std::vector<std::string>& words) {
  CLI::App app;
  RunFlags flags;
  AddRunFlags(app, flags);
  const torchrun::RunLine line = MUSTER_TRY(torchrun::SplitRunLine(words, OwnOptions(app)));
  std::vector<std::string> left = line.own;
  left.emplace_back("--");
  left.insert(left.end(), line.words.begin(), line.words.end());
  std::ranges::reverse(left);  // as CLI11 takes a vector
  try {
    app.parse(left);
  } catch (const CLI::ParseError& error) {
    return Error(Code::kInvalid, error.what());
  }
  MUSTER_TRY(ReadTorchrun(line, [](const std::string&) { return std::nullopt; }, flags));
  return flags;
}

}  // namespace muster::cli

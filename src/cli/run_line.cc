#include "cli/run_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>

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

}  // namespace

Result<std::vector<std::string>> TakeRunLine(const CLI::App& app, std::vector<std::string> words,
                                             Invocation& invocation) {
  const auto verb =
      std::ranges::find_if(words, [](const std::string& word) { return !word.starts_with('-'); });
  if (verb == words.end() || *verb != "run") return words;
  const auto own = OwnOptions(*app.get_subcommand("run"));
  invocation.line = MUSTER_TRY(torchrun::SplitRunLine(std::span(verb + 1, words.end()), own));
  std::vector<std::string> left(words.begin(), verb + 1);
  left.insert(left.end(), invocation.line.own.begin(), invocation.line.own.end());
  if (!invocation.line.words.empty()) {
    left.emplace_back("--");
    left.insert(left.end(), invocation.line.words.begin(), invocation.line.words.end());
  }
  return left;
}

}  // namespace muster::cli

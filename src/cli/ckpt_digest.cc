// muster ckpt digest CKPT [CKPT…]: one number for what each holds, whatever wrote it; with more
// than one, whether they are bitwise equal. 1 when they are not.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/ckpt_open.h"
#include "cli/verb.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> paths;
  std::string group{checkpoint::kAllGroups};
};

struct Digested {
  std::string path;
  std::uint64_t step = 0;
  std::string digest;
};

Result<std::vector<Digested>> DigestAll(const Arguments& arguments) {
  std::vector<Digested> all;
  for (const std::string& path : arguments.paths) {
    checkpoint::Checkpoint opened = MUSTER_TRY(OpenCheckpoint(path));
    all.push_back({.path = opened.path(),
                   .step = opened.manifest().step,
                   .digest = MUSTER_TRY(checkpoint::Digest(opened, arguments.group))});
  }
  return all;
}

Result<int> Run(const Arguments& arguments, bool json) {
  const std::vector<Digested> all = MUSTER_TRY(DigestAll(arguments));
  const bool equal = std::ranges::all_of(
      all, [&](const Digested& digested) { return digested.digest == all[0].digest; });
  if (json) {
    Json rows = Json::array();
    for (const Digested& digested : all)
      rows.push_back(
          {{"path", digested.path}, {"step", digested.step}, {"digest", digested.digest}});
    Json document = {{"group", arguments.group}, {"checkpoints", std::move(rows)}};
    if (all.size() > 1) document["bitwise_equal"] = equal;
    MUSTER_TRY(PrintJson(document));
    return equal ? 0 : 1;
  }
  std::string text;
  for (const Digested& digested : all)
    text += fmt::format("{}  step {}  {}\n", digested.digest, digested.step, digested.path);
  if (all.size() > 1) text += equal ? "bitwise equal\n" : "not equal\n";
  MUSTER_TRY(PrintText(text));
  return equal ? 0 : 1;
}

}  // namespace

void AddCkptDigest(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(
      parent, "digest", "One number for what a checkpoint holds; compares two or more", invocation);
  const auto arguments = std::make_shared<Arguments>();
  app->add_option("CKPT", arguments->paths, "Checkpoints, or folders whose newest is meant")
      ->required();
  AddGroupOption(*app, arguments->group);
  app->callback([&invocation, arguments] {
    invocation.action = [&invocation, arguments] { return Run(*arguments, invocation.json); };
  });
}

}  // namespace muster::cli

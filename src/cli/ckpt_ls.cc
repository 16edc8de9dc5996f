// muster ckpt ls CKPT: the committed checkpoints of a folder, oldest first; a damaged one says so.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/absent.h"
#include "base/durable.h"
#include "base/text.h"
#include "cli/ckpt_open.h"
#include "cli/verb.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

Json Describe(const checkpoint::CheckpointInfo& info) {
  Json row = {{"step", info.step}, {"path", info.path}};
  const auto opened = checkpoint::Checkpoint::Open(PosixFiles(), info.path);
  if (!opened) {
    row["damage"] = opened.error().message();
    return row;
  }
  const checkpoint::Manifest& manifest = opened->manifest();
  row["created_utc"] = manifest.created_utc;
  row["bytes"] = StoredBytes(manifest).count;
  row["generation"] = manifest.generation.value();
  row["ranks"] = manifest.world;
  row["model"] = manifest.model;
  return row;
}

std::string Line(const Json& row) {
  if (row.contains("damage"))
    return fmt::format("{:>12}  is damaged: {}\n", row["step"].get<std::uint64_t>(),
                       PlainLine(row["damage"].get<std::string>()));
  return fmt::format("{:>12}  {:<24}  {:>10}  {:>5}  {:>3}  {}\n", row["step"].get<std::uint64_t>(),
                     PlainLine(row["created_utc"].get<std::string>()),
                     FormatBytes({row["bytes"].get<std::int64_t>()}),
                     row["ranks"].get<std::uint32_t>(), row["generation"].get<std::uint64_t>(),
                     PlainLine(row["model"].get<std::string>()));
}

/// The table, and a sentence when something is wrong.
std::string ToText(const Json& rows) {
  std::string text = fmt::format("{:>12}  {:<24}  {:>10}  {:>5}  {:>3}  {}\n", "STEP", "CREATED",
                                 "SIZE", "RANKS", "GEN", "MODEL");
  std::size_t damaged = 0;
  for (const Json& row : rows) {
    text += Line(row);
    damaged += row.contains("damage") ? 1 : 0;
  }
  if (damaged == 0) return text;
  return text + fmt::format("{} of {} {} damaged; a run that resumes passes over it\n", damaged,
                            Counted(rows.size(), "checkpoint"), damaged == 1 ? "is" : "are");
}

Result<int> Run(const std::string& path, bool json) {
  const std::string folder = MUSTER_TRY(CheckpointFolder(path));
  if (folder == path && checkpoint::IsOneCheckpoint(PosixFiles(), path)) {
    const std::string absolute = AbsolutePath(path);
    return Error(Code::kPrecondition, absolute + " is one checkpoint, not a folder of them",
                 fmt::format("'muster ckpt show {}' tells what it holds, 'muster ckpt ls {}' lists "
                             "it with its neighbours",
                             path, ParentOf(absolute)));
  }
  Json rows = Json::array();
  // A job that has not saved yet has not made its folder either.
  if (folder == path || PosixFiles().Exists(folder)) {
    for (const auto& info : MUSTER_TRY(checkpoint::ListCheckpoints(PosixFiles(), folder)))
      rows.push_back(Describe(info));
  }
  if (json) {
    MUSTER_TRY(PrintJson({{"folder", folder}, {"checkpoints", rows}}));
    return 0;
  }
  if (rows.empty()) {
    Note(fmt::format("muster: there is no committed checkpoint in {}\n", AbsolutePath(folder)));
    return 0;
  }
  MUSTER_TRY(PrintText(ToText(rows)));
  return 0;
}

}  // namespace

void AddCkptLs(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "ls", "List the committed checkpoints of a folder", invocation);
  const auto folder = std::make_shared<std::string>();
  app->add_option("CKPT", *folder, "A folder of checkpoints, or a run folder")->required();
  app->callback([&invocation, folder] {
    invocation.action = [&invocation, folder] { return Run(*folder, invocation.json); };
  });
}

}  // namespace muster::cli

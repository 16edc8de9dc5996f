// muster ckpt ls CKPT: the committed checkpoints of a folder, oldest first. Of one that cannot be
// opened it says what a run would do: it passes over a damaged one (DataLoss) and ends at any
// other, such as one of a later version.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/absent.h"
#include "base/durable.h"
#include "base/text.h"
#include "cli/ckpt_open.h"
#include "cli/verb.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDamage = "damage";
constexpr const char* kRefusal = "refusal";

Json Describe(const checkpoint::CheckpointInfo& info) {
  Json row = {{"step", info.step}, {"path", info.path}};
  const auto opened = checkpoint::Checkpoint::Open(PosixFiles(), info.path);
  if (!opened) {
    const bool damaged = opened.error().code() == Code::kDataLoss;
    row[damaged ? kDamage : kRefusal] =
        damaged ? opened.error().message() : opened.error().ToString();
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
  for (const auto& [key, what] :
       {std::pair(kDamage, "is damaged"), std::pair(kRefusal, "cannot be used")}) {
    if (!row.contains(key)) continue;
    return fmt::format("{:>12}  {}: {}\n", row["step"].get<std::uint64_t>(), what,
                       PlainLine(row[key].get<std::string>()));
  }
  return fmt::format("{:>12}  {:<24}  {:>10}  {:>5}  {:>3}  {}\n", row["step"].get<std::uint64_t>(),
                     PlainLine(row["created_utc"].get<std::string>()),
                     FormatBytes({row["bytes"].get<std::int64_t>()}),
                     row["ranks"].get<std::uint32_t>(), row["generation"].get<std::uint64_t>(),
                     PlainLine(row["model"].get<std::string>()));
}

/// "1 of 2 checkpoints is …", or nothing.
std::string SumUp(const Json& rows, const char* key, std::string_view of_one,
                  std::string_view of_more) {
  const auto count =
      std::ranges::count_if(rows, [&](const Json& row) { return row.contains(key); });
  if (count == 0) return {};
  return fmt::format("{} of {} {}\n", count, Counted(rows.size(), "checkpoint"),
                     count == 1 ? of_one : of_more);
}

/// The table, and a sentence when something is wrong.
std::string ToText(const Json& rows) {
  std::string text = fmt::format("{:>12}  {:<24}  {:>10}  {:>5}  {:>3}  {}\n", "STEP", "CREATED",
                                 "SIZE", "RANKS", "GEN", "MODEL");
  for (const Json& row : rows) text += Line(row);
  text += SumUp(rows, kDamage, "is damaged; a run that resumes passes over it",
                "are damaged; a run that resumes passes over them");
  return text + SumUp(rows, kRefusal, "cannot be used here; a run that comes to it ends there",
                      "cannot be used here; a run that comes to one ends there");
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

// muster ckpt …: looking at checkpoints without torch and without the trainer.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/ckpt_open.h"
#include "cli/verb.h"

namespace muster::cli {

void AddCkptLs(CLI::App& parent, Invocation& invocation);
void AddCkptShow(CLI::App& parent, Invocation& invocation);
void AddCkptVerify(CLI::App& parent, Invocation& invocation);
void AddCkptDigest(CLI::App& parent, Invocation& invocation);
void AddCkptDiff(CLI::App& parent, Invocation& invocation);
void AddCkptExport(CLI::App& parent, Invocation& invocation);

void AddCkpt(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "ckpt", "List, check, compare and export checkpoints", invocation);
  app->require_subcommand(1);
  app->footer(
      "CKPT is a step-… folder, a folder of checkpoints or a run folder; of the latter two, the "
      "newest\n"
      "checkpoint is meant. The format is docs/formats/checkpoint.md.");
  AddCkptLs(*app, invocation);
  AddCkptShow(*app, invocation);
  AddCkptVerify(*app, invocation);
  AddCkptDigest(*app, invocation);
  AddCkptDiff(*app, invocation);
  AddCkptExport(*app, invocation);
}

Result<checkpoint::Checkpoint> OpenCheckpoint(const std::string& path) {
  const std::string folder = MUSTER_TRY(checkpoint::ResolveCheckpoint(PosixFiles(), path));
  return checkpoint::Checkpoint::Open(PosixFiles(), folder);
}

Result<checkpoint::Scope> ParseScope(const std::string& only) {
  if (only == "all") return checkpoint::Scope::kAll;
  if (only == "params") return checkpoint::Scope::kParams;
  return Error(Code::kInvalid, "--only is '" + only + "'", "it takes params or all");
}

Status PrintJson(const nlohmann::ordered_json& document) {
  return Print(document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

Bytes StoredBytes(const checkpoint::Manifest& manifest) {
  Bytes bytes;
  for (const auto& file : manifest.files)
    bytes.count += static_cast<std::int64_t>(file.header_bytes + file.data_bytes);
  return bytes;
}

}  // namespace muster::cli

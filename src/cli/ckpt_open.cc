#include "cli/ckpt_open.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/absent.h"
#include "base/durable.h"
#include "cli/verb.h"
#include "spec/command.h"
#include "spec/job.h"

namespace muster::cli {
namespace {

constexpr std::string_view kFolderFlag = "--checkpoint-dir";

Result<std::string> FolderOfJob(const std::string& run) {
  const std::string file = run + "/job.yaml";
  if (!PosixFiles().Exists(file)) return spec::CheckpointFolder(spec::CheckpointPlan{}.dir, run);
  auto parsed = spec::ReadJob(PosixFiles(), file);
  if (!parsed) {
    return Error(Code::kDataLoss, parsed.error().message() + "; where the run saved is not known",
                 "name the folder of checkpoints itself");
  }
  const spec::Job& job = parsed->job;
  std::string flag = spec::FolderInCommand(job.command);
  if (flag.starts_with('/')) return flag;
  if (!flag.empty()) {
    return Error(Code::kPrecondition,
                 AbsolutePath(run) + " ran with " + std::string(kFolderFlag) + " " + flag +
                     ", below the folder where it was started, which it does not record",
                 "name that folder of checkpoints itself");
  }
  return spec::CheckpointFolder(job.checkpoint.dir, run);
}

bool IsRunFolder(const std::string& path) {
  return PosixFiles().Exists(path + "/run.json") || PosixFiles().Exists(path + "/job.yaml");
}

}  // namespace

Result<std::string> CheckpointFolder(const std::string& path) {
  if (!PosixFiles().Exists(path)) {
    return Absent("checkpoint, folder of checkpoints or run folder", path,
                  "look at the name; 'muster run' names its run folder when it begins");
  }
  std::error_code unknown;
  if (!std::filesystem::is_directory(path, unknown) && !unknown) {
    return Error(Code::kPrecondition,
                 AbsolutePath(path) + " is a file; checkpoints and runs are folders",
                 "name the folder that it is in: " + ParentOf(AbsolutePath(path)));
  }
  return IsRunFolder(path) ? FolderOfJob(path) : path;
}

Result<checkpoint::Checkpoint> OpenCheckpoint(const std::string& path) {
  const std::string folder = MUSTER_TRY(CheckpointFolder(path));
  if (folder != path && !PosixFiles().Exists(folder)) {
    return Error(Code::kNotFound,
                 AbsolutePath(path) + " has no checkpoint: its job writes them to " +
                     AbsolutePath(folder) + ", which does not exist",
                 "'muster show " + path + "' tells how far the run came");
  }
  return checkpoint::Checkpoint::Open(
      PosixFiles(), MUSTER_TRY(checkpoint::ResolveCheckpoint(PosixFiles(), folder)));
}

void AddGroupOption(CLI::App& app, std::string& group) {
  app.add_option("--group", group,
                 "The tensors of one group (param, exp_avg, …: muster ckpt show lists them), or "
                 "all")
      ->capture_default_str();
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

#pragma once
// What the ckpt verbs share: finding what the user named, and JSON on stdout. A user names a
// step-… folder, a folder of checkpoints, or a run folder, which stands for the folder that its job
// writes checkpoints to: the job.yaml in it says where. Single-threaded.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "train/checkpoint/digest.h"
#include "train/checkpoint/open.h"

namespace CLI {
class App;
}

namespace muster::cli {

/// The folder of checkpoints that `path` means: that of its job when it is a run folder (it need
/// not exist yet), else itself. NotFound when there is nothing at `path`,
/// Precondition when it is a file.
Result<std::string> CheckpointFolder(const std::string& path);

/// A checkpoint, or the newest one of the folder that `path` means.
Result<checkpoint::Checkpoint> OpenCheckpoint(const std::string& path);

/// --group NAME, the same for every verb that takes it. `group` holds the default.
void AddGroupOption(CLI::App& app, std::string& group);

/// One document and a newline on stdout.
Status PrintJson(const nlohmann::ordered_json& document);

/// Bytes of all files of a checkpoint but the manifest's.
Bytes StoredBytes(const checkpoint::Manifest& manifest);

}  // namespace muster::cli

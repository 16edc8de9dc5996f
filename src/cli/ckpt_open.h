#pragma once
// What the ckpt verbs share: opening what the user named, and JSON on stdout. Single-threaded.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "train/checkpoint/digest.h"
#include "train/checkpoint/open.h"

namespace muster::cli {

/// A checkpoint, or the newest one of a checkpoints folder or of a run folder.
Result<checkpoint::Checkpoint> OpenCheckpoint(const std::string& path);

/// --only params|all.
Result<checkpoint::Scope> ParseScope(const std::string& only);

/// One document and a newline on stdout.
Status PrintJson(const nlohmann::ordered_json& document);

/// Bytes of all files of a checkpoint but the manifest's.
Bytes StoredBytes(const checkpoint::Manifest& manifest);

}  // namespace muster::cli

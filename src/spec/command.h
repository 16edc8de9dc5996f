#pragma once
// Variables in a job's command. There is no shell: only $MUSTER_NAME and ${MUSTER_NAME} are
// replaced, "$$MUSTER_NAME" keeps the text "$MUSTER_NAME", and every other dollar stays as it is. A
// MUSTER_ variable that does not exist is an error, because the program would get its name as a
// path. Pure.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "spec/job.h"

namespace muster::spec {

using Variables = std::map<std::string, std::string, std::less<>>;

/// Where workers find a source: `at`, else the local path of a file:// or plain `uri`, else (s3)
/// the uri itself.
std::string DataPath(const DataSource& source);

/// Where a run keeps its checkpoints: `dir` is the job's checkpoint.dir, relative to the run
/// folder.
std::string CheckpointFolder(const std::string& dir, const std::string& run_folder);

/// What a trainer's own --checkpoint-dir says, which its program heeds before the job's key; "" for
/// every other command.
std::string FolderInCommand(const std::vector<std::string>& command);

/// MUSTER_DATA_0, …: DataPath of each entry of `data`.
Variables DataVariables(const Job& job);

/// Invalid names the variable that does not exist, and those that do.
Result<std::string> ExpandArgument(std::string_view argument, const Variables& variables);
/// Each word of it; a word stays one word whatever is put in.
Result<std::vector<std::string>> ExpandCommand(const std::vector<std::string>& command,
                                               const Variables& variables);

}  // namespace muster::spec

#include "spec/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/durable.h"

namespace muster::spec {
namespace {

constexpr std::string_view kPrefix = "MUSTER_";
constexpr std::string_view kTrainer = "muster-train";
constexpr std::string_view kFolderFlag = "--checkpoint-dir";

/// Which a worker finds in its environment (env.cc): a shell in the command expands them there.
constexpr std::string_view kOfWorkers[] = {"MUSTER_RUN",
                                           "MUSTER_GENERATION",
                                           "MUSTER_GENERATION_FILE",
                                           "MUSTER_CHECKPOINT_DIR",
                                           "MUSTER_CHECKPOINT_EVERY",
                                           "MUSTER_HEARTBEAT_FD",
                                           "MUSTER_ARENA_FD",
                                           "MUSTER_RECOVERY_FD"};

bool IsVariableByte(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/// A variable at the start of a text: "$MUSTER_X" or "${MUSTER_X}". Empty when there is none.
struct Reference {
  std::string_view name;
  std::size_t length = 0;
};

Reference ReferenceAt(std::string_view text) {
  const bool braced = text.starts_with("${");
  const std::size_t start = braced ? 2 : 1;
  if (text.empty() || text[0] != '$' || !text.substr(start).starts_with(kPrefix)) return {};
  std::size_t end = start;
  while (end < text.size() && IsVariableByte(text[end])) ++end;
  if (braced && (end == text.size() || text[end] != '}')) return {};
  return {.name = text.substr(start, end - start), .length = end + (braced ? 1 : 0)};
}

Error Unknown(std::string_view name, const Variables& variables) {
  std::string known;
  for (const auto& [variable, value] : variables) {
    known += fmt::format("{}${}", known.empty() ? "" : ", ", variable);
  }
  return Error(Code::kInvalid,
               fmt::format("the variable ${} does not exist; {}", name,
                           known.empty() ? "the job has no data entry" : "there is " + known),
               fmt::format("write $${} for one that the command itself is to expand", name));
}

}  // namespace

std::string CheckpointFolder(const std::string& dir, const std::string& run_folder) {
  return dir.starts_with('/') ? dir : run_folder + "/" + dir;
}

std::string FolderInCommand(const std::vector<std::string>& command) {
  if (command.empty() || muster::NameOf(command[0]) != kTrainer) return "";
  const std::string joined = std::string(kFolderFlag) + "=";
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i].starts_with(joined)) return command[i].substr(joined.size());
    if (command[i] == kFolderFlag && i + 1 < command.size()) return command[i + 1];
  }
  return "";
}

std::string DataPath(const DataSource& source) {
  if (!source.at.empty()) return source.at;
  constexpr std::string_view kFile = "file://";
  return source.uri.starts_with(kFile) ? source.uri.substr(kFile.size()) : source.uri;
}

Variables DataVariables(const Job& job) {
  Variables variables;
  for (std::size_t i = 0; i < job.data.size(); ++i) {
    variables.emplace(fmt::format("MUSTER_DATA_{}", i), DataPath(job.data[i]));
  }
  return variables;
}

Result<std::string> ExpandArgument(std::string_view argument, const Variables& variables) {
  std::string out;
  while (!argument.empty()) {
    const bool escaped = argument.starts_with("$$");
    const Reference reference = ReferenceAt(escaped ? argument.substr(1) : argument);
    const bool left =
        !escaped && std::ranges::find(kOfWorkers, reference.name) != std::end(kOfWorkers);
    if (reference.length == 0) {
      out += argument.front();
      argument.remove_prefix(1);
    } else if (escaped) {
      out += argument.substr(1, reference.length);
      argument.remove_prefix(1 + reference.length);
    } else if (left) {
      out += argument.substr(0, reference.length);
      argument.remove_prefix(reference.length);
    } else {
      const auto found = variables.find(reference.name);
      if (found == variables.end()) return Unknown(reference.name, variables);
      out += found->second;
      argument.remove_prefix(reference.length);
    }
  }
  return out;
}

Result<std::vector<std::string>> ExpandCommand(const std::vector<std::string>& command,
                                               const Variables& variables) {
  std::vector<std::string> expanded;
  expanded.reserve(command.size());
  for (const std::string& argument : command) {
    expanded.push_back(MUSTER_TRY(ExpandArgument(argument, variables)));
  }
  return expanded;
}

}  // namespace muster::spec

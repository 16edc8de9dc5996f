#include "profile/report/go_on.h"

#include <fmt/format.h>

#include <algorithm>

#include "spec/command.h"
#include "spec/job.h"

namespace muster::profile {
namespace {

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("/._-+=:,@%").find(c) != std::string_view::npos;
}

}  // namespace

std::string ShellWord(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, IsPlain)) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string CommandToGoOn(const std::string& folder, const std::string& job_yaml) {
  std::string command = "muster run " + ShellWord(folder + "/job.yaml");
  const auto parsed = spec::ParseJob(job_yaml, "job.yaml");
  const std::string dir = parsed ? parsed->job.checkpoint.dir : "checkpoints";
  // An absolute one is in the job already.
  if (!dir.starts_with('/')) {
    command += " --checkpoint-dir " + ShellWord(spec::CheckpointFolder(dir, folder));
  }
  return command;
}

}  // namespace muster::profile

#include "profile/report/go_on.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "spec/command.h"
#include "spec/job.h"

namespace muster::profile {
namespace {

constexpr std::string_view kFlags = "# flags:";

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("/._-+=:,@%").find(c) != std::string_view::npos;
}

/// Whether a checkpoint, or what a script saves, is in it: nothing hidden, nothing half-written.
bool HoldsSomething(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.') && !name.ends_with(".tmp")) return true;
  }
  return false;
}

std::string OneLine(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

/// Whether a shell takes it as words and does nothing else: plain characters, and between single
/// quotes all that can be shown.
bool IsOnlyWords(std::string_view line) {
  if (!line.starts_with(" ")) return false;
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') return false;
    if (c == '\'') {
      quoted = !quoted;
    } else if (!quoted && line.substr(i).starts_with("\\'")) {
      ++i;
    } else if (!quoted && c != ' ' && !IsPlain(c)) {
      return false;
    }
  }
  return !quoted;
}

/// The words of its FlagsLine with a space before each, where a shell takes them as they are:
/// whoever wrote the file, nothing of it is put in front of a shell that is no word.
std::string FlagsOf(std::string_view job_yaml) {
  if (!job_yaml.ends_with('\n')) return {};
  job_yaml.remove_suffix(1);
  std::string_view line = job_yaml.substr(job_yaml.rfind('\n') + 1);
  if (!line.starts_with(kFlags)) return {};
  line.remove_prefix(kFlags.size());
  return IsOnlyWords(line) ? std::string(line) : std::string();
}

}  // namespace

std::string ShellWord(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, IsPlain)) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string FlagsLine(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  std::string line(kFlags);
  for (const std::string& word : words) line += " " + OneLine(ShellWord(word));
  return line + "\n";
}

std::string CommandToGoOn(const std::string& folder, const std::string& job_yaml,
                          const std::string& cwd) {
  std::string command = cwd.empty() ? "" : "cd " + ShellWord(cwd) + " && ";
  command += "muster run " + ShellWord(folder + "/job.yaml") + FlagsOf(job_yaml);
  const auto parsed = spec::ParseJob(job_yaml, "job.yaml");
  const std::string dir = parsed ? parsed->job.checkpoint.dir : "checkpoints";
  // An absolute one is in the job already.
  if (dir.starts_with('/')) return command;
  const std::string saved = spec::CheckpointFolder(dir, folder);
  if (HoldsSomething(saved)) command += " --checkpoint-dir " + ShellWord(saved);
  return command;
}

}  // namespace muster::profile

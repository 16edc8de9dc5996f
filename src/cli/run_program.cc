#include "cli/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/absent.h"
#include "base/durable.h"
#include "base/fd.h"
#include "os/process.h"
#include "spec/env.h"

namespace muster::cli {
namespace {

constexpr std::string_view kTrainer = "muster-train";

std::string SearchPath() {
  return spec::ProcessEnv()("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
}

/// The Python that a user of torchrun expects: that of the environment that is active.
Result<std::string> FindPython(const std::string& wanted) {
  if (!wanted.empty()) {
    auto found = os::FindProgram(wanted, SearchPath());
    if (found) return found;
    return std::move(found.error()).Within("PYTHON_EXEC").Hint("correct it; nothing was created");
  }
  if (const auto venv = spec::ProcessEnv()("VIRTUAL_ENV"); venv && !venv->empty()) {
    std::string python = *venv + "/bin/python";
    if (::access(python.c_str(), X_OK) == 0) return python;
  }
  for (const char* name : {"python3", "python"}) {
    if (auto found = os::FindProgram(name, SearchPath())) return found;
  }
  return Error(Code::kNotFound, "there is no python3 in PATH",
               "activate an environment, or name its interpreter: PYTHON_EXEC=/path/to/python; "
               "nothing was created");
}

/// An executable file that no Python can run: a binary, or a script whose #! line names something
/// else. That of a *.py may name what starts Python (uv run).
bool IsProgram(const std::string& path) {
  if (path.ends_with(".py") || ::access(path.c_str(), X_OK) != 0) return false;
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 256> begin{};
  const ssize_t size = file.valid() ? ::read(file.get(), begin.data(), begin.size()) : 0;
  const std::string_view text(begin.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (text.starts_with("\x7f"
                       "ELF"))
    return true;
  const std::string_view first = text.substr(0, text.find('\n'));
  return first.starts_with("#!") && first.find("python") == std::string_view::npos;
}

}  // namespace

bool IsTrainer(const std::string& program) { return NameOf(program) == kTrainer; }

/// "python3 -u train.py --lr 1" → "train", "./a.out" → "a".
std::string NameOfCommand(const std::vector<std::string>& command) {
  std::string source = command.empty() ? "job" : command[0];
  const auto script =
      std::ranges::find_if(command, [](const std::string& word) { return word.ends_with(".py"); });
  if (script != command.end()) source = *script;
  source = NameOf(source);
  source = source.substr(0, source.find('.', 1));
  std::string name;
  for (const char c : source.substr(0, 40)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain) name += c;
    if (!plain && !name.empty() && name.back() != '-') name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  return name.empty() ? "job" : name;
}

Result<std::string> FindCommand(const std::string& name, const std::string& folder) {
  std::string beside = folder + "/" + name;
  if (name == kTrainer && ::access(beside.c_str(), X_OK) == 0) return beside;
  Result<std::string> found = os::FindProgram(name, SearchPath());
  if (!found) {
    return std::move(found.error()).Within("command").Hint("check its name; nothing was created");
  }
  if (::access(found->c_str(), X_OK) != 0 || std::filesystem::is_directory(*found)) {
    return Error(Code::kDenied, fmt::format("command: {} is not an executable file", *found),
                 "chmod +x it, or put its interpreter in front; nothing was created");
  }
  // Workers get an absolute path: their folder is ours now, but not for ever.
  std::error_code gone;
  const auto absolute = std::filesystem::absolute(*found, gone);
  if (gone) return ErrnoError("working folder", gone.value()).Hint("cd to one that exists");
  return absolute.lexically_normal().string();
}

Result<std::vector<std::string>> CommandFor(const std::vector<std::string>& words,
                                            const spec::torchrun::Settings& torchrun,
                                            const std::string& folder) {
  using spec::torchrun::Runner;
  if (torchrun.runner == Runner::kProgram) return words;
  std::vector<std::string> command;
  if (torchrun.runner == Runner::kScript) {
    const std::string& script = words.front();
    if (::access(script.c_str(), F_OK) != 0) {
      if (FindCommand(script, folder)) return words;
      return Absent("script", script,
                    "check the path; a command goes behind --: muster run -n 2 -- PROGRAM …; "
                    "nothing was created");
    }
    if (IsProgram(script)) {
      command = words;
      if (script.find('/') == std::string::npos) command[0].insert(0, "./");
      return command;
    }
  }
  command = {MUSTER_TRY(FindPython(torchrun.interpreter)), "-u"};
  if (torchrun.runner == Runner::kModule) command.emplace_back("-m");
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

}  // namespace muster::cli

#include "agent/launch/python_command.h"

#include <algorithm>
#include <deque>
#include <set>
#include <string_view>

#include "agent/zygote/python_zygote.h"
#include "base/absent.h"
#include "base/durable.h"

namespace muster::agent {
namespace {

// Flags that change nothing for a copy, because the interpreter that is copied got them too.
constexpr std::string_view kFlags = "bBdEIOPqRsSuv";
constexpr std::string_view kFlagsWithValue = "WX";
// Their import is torch's, and more.
constexpr std::string_view kImportTorch[] = {"torch",
                                             "torchvision",
                                             "torchaudio",
                                             "torchdata",
                                             "torchmetrics",
                                             "lightning",
                                             "lightning_fabric",
                                             "pytorch_lightning",
                                             "transformers",
                                             "accelerate",
                                             "deepspeed",
                                             "diffusers",
                                             "timm",
                                             "peft",
                                             "trl",
                                             "fairscale",
                                             "megatron",
                                             "nanotron"};
constexpr Bytes kMostSource{1 << 20};
constexpr std::size_t kMostFiles = 32;

/// python, python3, python3.11.
bool IsPython(const std::string& program) {
  std::string_view name = program;
  name.remove_prefix(name.rfind('/') + 1);
  if (!name.starts_with("python")) return false;
  name.remove_prefix(6);
  return name.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool Has(std::string_view letters, char c) { return letters.find(c) != std::string_view::npos; }

bool IsNamePart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && Has(" \t\r(", text.front())) text.remove_prefix(1);
  return text;
}

/// Takes a dotted name off the front; dots before it are those of a relative import.
std::string_view TakeName(std::string_view* text) {
  *text = Trim(*text);
  while (text->starts_with('.')) text->remove_prefix(1);
  std::size_t length = 0;
  while (length < text->size() && (IsNamePart((*text)[length]) || (*text)[length] == '.')) ++length;
  const std::string_view name = text->substr(0, length);
  text->remove_prefix(length);
  return name;
}

/// "torch.nn as nn, math" → torch.nn, math.
void AddNames(std::string_view text, std::vector<std::string>* names) {
  for (;;) {
    if (const std::string_view name = TakeName(&text); !name.empty()) names->emplace_back(name);
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

/// The modules that a source may import, wherever in it; a multi-line list is not followed.
std::vector<std::string> ImportsOf(std::string_view source) {
  std::vector<std::string> names;
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    std::string_view line = Trim(source.substr(0, end));
    source.remove_prefix(std::min(end + 1, source.size()));
    if (line.starts_with("import ")) {
      AddNames(line.substr(7), &names);
    } else if (line.starts_with("from ")) {
      line.remove_prefix(5);
      const std::string_view module = TakeName(&line);
      line = Trim(line);
      if (!module.empty()) {
        names.emplace_back(module);
      } else if (line.starts_with("import ")) {
        AddNames(line.substr(7), &names);  // from . import model
      }
    }
  }
  return names;
}

/// Where `module` may be below `folder`.
std::vector<std::string> SourcesOf(std::string module, const std::string& folder) {
  std::ranges::replace(module, '.', '/');
  const std::string path = folder + "/" + module;
  return {path + ".py", path + "/__main__.py", path + "/__init__.py"};
}

}  // namespace

std::optional<PythonProgram> ParsePython(const std::vector<std::string>& command) {
  if (command.empty() || !IsPython(command[0])) return std::nullopt;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word == "-" || word.starts_with("--") || word.empty()) return std::nullopt;
    if (word[0] != '-') return PythonProgram{PythonProgram::Kind::kFile, i};
    for (std::size_t k = 1; k < word.size(); ++k) {
      const bool last = k + 1 == word.size();
      if (word[k] == 'm' || word[k] == 'c') {
        if (!last || i + 1 == command.size()) return std::nullopt;
        const auto kind =
            word[k] == 'm' ? PythonProgram::Kind::kModule : PythonProgram::Kind::kCode;
        return PythonProgram{kind, i + 1};
      }
      if (Has(kFlagsWithValue, word[k])) {
        if (last) ++i;
        break;
      }
      if (!Has(kFlags, word[k])) return std::nullopt;
    }
  }
  return std::nullopt;
}

std::vector<std::string> GuessPreload(FileSystem& files, const std::vector<std::string>& command,
                                      const PythonProgram& program, const std::string& folder) {
  const std::string& word = command[program.index];
  std::deque<std::string> paths;
  std::string beside = folder;
  std::vector<std::string> imports;
  if (program.kind == PythonProgram::Kind::kCode) {
    std::string statements = word;
    std::ranges::replace(statements, ';', '\n');
    imports = ImportsOf(statements);
  } else if (program.kind == PythonProgram::Kind::kModule) {
    for (const std::string& path : SourcesOf(word, folder)) paths.push_back(path);
    beside = ParentOf(paths.front());
  } else {
    paths.push_back(word.starts_with('/') ? word : folder + "/" + word);
    beside = ParentOf(paths.front());
  }
  std::set<std::string> seen(paths.begin(), paths.end());
  for (std::size_t read = 0; read < kMostFiles;) {
    for (const std::string& name : imports) {
      const std::string top = name.substr(0, name.find('.'));
      if (std::ranges::find(kImportTorch, top) != std::end(kImportTorch)) return {"torch"};
      for (const std::string& base : {beside, folder}) {
        for (std::string& path : SourcesOf(name, base)) {
          if (seen.insert(path).second) paths.push_back(std::move(path));
        }
      }
    }
    imports.clear();
    if (paths.empty()) return {};
    const auto source = files.ReadAll(paths.front(), kMostSource);
    paths.pop_front();
    if (!source) continue;
    imports = ImportsOf(*source);
    ++read;
  }
  return {};
}

bool IsSource(FileSystem& files, const std::vector<std::string>& command,
              const PythonProgram& program, const std::string& folder) {
  if (program.kind != PythonProgram::Kind::kFile) return true;
  const std::string& word = command[program.index];
  const std::string path = word.starts_with('/') ? word : folder + "/" + word;
  if (!files.Exists(path)) return true;
  const auto text = files.ReadAll(path, kMostSource);
  // Whatever is larger, or no file: nobody writes a MiB of Python into one.
  return text && text->find('\0') == std::string::npos;
}

Status CheckScript(FileSystem& files, const std::vector<std::string>& command,
                   const std::string& folder) {
  const auto program = ParsePython(command);
  if (!program || program->kind != PythonProgram::Kind::kFile) return Ok();
  const std::string& word = command[program->index];
  const std::string path = word.starts_with('/') ? word : folder + "/" + word;
  if (files.Exists(path)) return Ok();
  return Absent("script", path, "look at the name and the folder; nothing was created");
}

std::vector<std::string> PythonZygote(const std::vector<std::string>& command,
                                      const PythonProgram& program,
                                      const std::vector<std::string>& modules) {
  constexpr const char* kKinds[] = {"file", "module", "code"};
  std::string list;
  for (const std::string& module : modules) list += (list.empty() ? "" : ",") + module;
  // The interpreter's flags come first, without the -m or -c that ends them.
  const auto flags = static_cast<std::ptrdiff_t>(program.index);
  std::vector<std::string> words(command.begin(), command.begin() + flags);
  if (program.kind != PythonProgram::Kind::kFile) {
    words.back().pop_back();
    if (words.back() == "-") words.pop_back();
  }
  words.insert(words.end(),
               {"-c", std::string(kPythonZygote), "3", kKinds[static_cast<int>(program.kind)],
                std::to_string(program.index), list});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace muster::agent

#include "spec/import/launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/durable.h"
#include "spec/import/shell_words.h"
#include "spec/torchrun/line.h"
#include "spec/torchrun/settings.h"

namespace muster::spec {
namespace {

using Fate = ImportedField::Fate;
using Map = std::map<std::string, std::string, std::less<>>;

/// hyperpodrun's flags beyond torchrun's.
struct OwnFlag {
  std::string_view name;
  bool takes_value;
  Fate fate;
  std::string_view why;
};

constexpr std::string_view kNoServer = "Muster's agents dial out: no port is opened for them";
constexpr std::string_view kHooks =
    "nothing runs before or behind the workers; call it in the script, or around muster run";

constexpr std::array<OwnFlag, 11> kOwnFlags = {{
    {"server-host", true, Fate::kNoMeaning, kNoServer},
    {"server-port", true, Fate::kNoMeaning, kNoServer},
    {"server-log-level", true, Fate::kNoMeaning, kNoServer},
    {"server-shutdown-timeout", true, Fate::kNoMeaning, kNoServer},
    {"shutdown-signal", true, Fate::kNoMeaning,
     "workers get SIGTERM first and SIGKILL after the grace, always"},
    {"inprocess-restart", false, Fate::kNoMeaning,
     "a program on Muster's library is recovered in place anyway, any other cannot be"},
    {"inprocess-timeout", true, Fate::kNoMeaning,
     "Muster takes three steps of the program, at least 2 s"},
    {"pre-train-script", true, Fate::kNotYet, kHooks},
    {"pre-train-args", true, Fate::kNotYet, kHooks},
    {"post-train-script", true, Fate::kNotYet, kHooks},
    {"post-train-args", true, Fate::kNotYet, kHooks},
}};

bool IsLauncher(std::string_view name) { return name == "hyperpodrun" || name == "torchrun"; }

bool IsPython(std::string_view name) {
  return name.starts_with("python") &&
         name.find_first_not_of("0123456789.", std::string_view("python").size()) ==
             std::string_view::npos;
}

/// How many words start a launcher: 1 for torchrun, 3 for python -m torch.distributed.run; 0: none.
std::size_t LauncherLength(std::span<const std::string> words) {
  if (words.empty()) return 0;
  const std::string name = muster::NameOf(words[0]);
  if (IsLauncher(name)) return 1;
  if (words.size() < 3 || !IsPython(name) || words[1] != "-m") return 0;
  const bool module = words[2] == "torch.distributed.run" || words[2] == "torch.distributed.launch";
  return module ? 3 : 0;
}

/// ["bash", "-lc", TEXT]: its text; null for everything else.
const std::string* ShellText(std::span<const std::string> words) {
  if (words.size() < 3) return nullptr;
  const std::string name = muster::NameOf(words[0]);
  const bool shell = name == "sh" || name == "bash" || name == "dash" || name == "zsh";
  const bool text = words[1].size() > 1 && words[1][0] == '-' && words[1].back() == 'c';
  return shell && text ? &words[2] : nullptr;
}

bool StartsLauncher(std::string_view text) {
  return text.find("hyperpodrun") != std::string_view::npos ||
         text.find("torchrun") != std::string_view::npos ||
         text.find("torch.distributed.") != std::string_view::npos;
}

std::vector<torchrun::OwnOption> OwnOptions() {
  std::vector<torchrun::OwnOption> options;
  for (const OwnFlag& flag : kOwnFlags)
    options.push_back({std::string(flag.name), flag.takes_value});
  return options;
}

/// Only $MUSTER_ names are replaced in a job's command, and these words know nothing of it.
std::string Escaped(const std::string& word) {
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::string_view rest = std::string_view(word).substr(i);
    if (rest.starts_with("$MUSTER_") || rest.starts_with("${MUSTER_")) out += '$';
    out += word[i];
  }
  return out;
}

class Reader {
 public:
  Reader(const ContainerWords& container, const Map& variables, Import& import)
      : container_(container), variables_(variables), import_(import) {}

  LauncherShape Read() {
    std::vector<std::string> words = container_.words;
    if (const std::string* text = ShellText(words)) {
      auto simple = SimpleCommand(*text, variables_);
      if (simple) {
        words = *std::move(simple);
      } else if (StartsLauncher(*text)) {
        Refuse(
            "the launcher is started by a shell script that is more than one simple command: "
            "write the launcher's line as the container's command, and do the rest before");
        return {};
      }
    }
    const std::size_t length = LauncherLength(words);
    if (length == 0) {
      Program(words);
      return {};
    }
    return Line(std::span(words).subspan(length));
  }

 private:
  void Refuse(std::string message) {
    import_.Refuse(*container_.from, container_.path, std::move(message));
  }

  void Note(std::string_view flag, std::string value, Fate fate, std::string words) {
    import_.out.fields.push_back({.place = container_.from->place,
                                  .path = fmt::format("{} --{}", container_.path, flag),
                                  .value = std::move(value),
                                  .fate = fate,
                                  .words = std::move(words)});
  }

  void Command(std::vector<std::string> words) {
    for (std::string& word : words) word = Escaped(word);
    import_.Took(*container_.from, container_.path, "spec.command",
                 fmt::format("[{}]", fmt::join(words, ", ")));
    import_.out.job.command = std::move(words);
  }

  void Program(const std::vector<std::string>& words) {
    Command(words);
    import_.Note(Fate::kBeside, *container_.from, container_.path,
                 "every rank runs it; if it starts hyperpodrun or torchrun, put [python, script, "
                 "its arguments] in its place");
  }

  LauncherShape Line(std::span<const std::string> words) {
    const auto own = OwnOptions();
    auto line = torchrun::SplitRunLine(words, own);
    if (!line) {
      Refuse(line.error().message());
      return {};
    }
    const auto lookup = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
    const auto settings = torchrun::ReadSettings(*line, lookup);
    if (!settings) {
      Refuse(settings.error().message());
      return {};
    }
    NoteOwn(line->own);
    for (const torchrun::GivenFlag& given : line->flags) NoteFlag(given, *settings);
    if (line->words.empty()) {
      Refuse("the launcher is given no script");
      return {};
    }
    std::vector<std::string> command;
    if (settings->runner != torchrun::Runner::kProgram) command.emplace_back("python");
    if (settings->runner == torchrun::Runner::kModule) command.emplace_back("-m");
    command.insert(command.end(), line->words.begin(), line->words.end());
    Command(std::move(command));
    return {.nodes = settings->nodes, .ranks = settings->ranks};
  }

  void NoteOwn(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto equals = words[i].find('=');
      const std::string name =
          words[i].substr(2, equals == std::string::npos ? equals : equals - 2);
      const auto* const flag = std::ranges::find(kOwnFlags, name, &OwnFlag::name);
      if (flag == kOwnFlags.end()) continue;
      std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
      if (flag->takes_value && equals == std::string::npos && i + 1 < words.size())
        value = words[++i];
      Note(name, std::move(value), flag->fate, std::string(flag->why));
    }
  }

  void NoteFlag(const torchrun::GivenFlag& given, const torchrun::Settings& settings) {
    const std::string name(given.flag->name);
    if (!given.flag->why.empty()) {
      Note(name, given.value, Fate::kNoMeaning, std::string(given.flag->why));
    } else if (name == "nnodes") {
      Note(name, given.value, Fate::kTaken, "spec.nodes, where replicas does not say it");
    } else if (name == "nproc-per-node") {
      Note(name, given.value, Fate::kTaken, "spec.ranksPerNode");
      import_.out.sources.insert_or_assign(
          "spec.ranksPerNode",
          fmt::format("--nproc-per-node, line {}", container_.from->place.line));
    } else if (name == "module" || name == "no-python") {
      Note(name, "", Fate::kTaken, "spec.command");
    } else if (name == "max-restarts") {
      Note(name, given.value, Fate::kNoMeaning, "the manifest's runPolicy says how often");
    } else if (name == "log-dir") {
      Note(name, given.value, Fate::kNoMeaning, "logs are in the run folder: muster logs RUN");
    } else if (name == "shutdown-timeout" && settings.shutdown_s) {
      Beside(name, given.value, "--grace", std::to_string(*settings.shutdown_s));
    } else if (given.flag->kind == torchrun::Flag::Kind::kSwitch) {
      Beside(name, given.value, "--" + name, "");
    } else {
      Beside(name, given.value, "--" + name, given.value);
    }
  }

  void Beside(std::string_view flag, const std::string& value, const std::string& option,
              const std::string& to) {
    Note(flag, value, Fate::kBeside,
         fmt::format("muster run … {}{}{}", option, to.empty() ? "" : " ", to));
    import_.Option(option, to);
  }

  const ContainerWords& container_;
  const Map& variables_;
  Import& import_;
};

}  // namespace

LauncherShape ReadLauncher(const ContainerWords& container, const Map& variables, Import& import) {
  return Reader(container, variables, import).Read();
}

}  // namespace muster::spec

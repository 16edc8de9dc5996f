#include "spec/import/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "spec/import/quantity.h"
#include "spec/units.h"

namespace muster::spec {
namespace {

using Fate = ImportedField::Fate;
using Map = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kProbes = "Muster watches the processes, their steps and their lines";
constexpr std::string_view kTerminal = "a worker's stdin is empty";

constexpr std::array<OtherField, 18> kFields = {{
    {"name", Fate::kNoMeaning, "a job has one program"},
    {"image", Fate::kNotYet,
     "no image is started: the program and its libraries are those of this host"},
    {"imagePullPolicy", Fate::kNoMeaning, "no image is started"},
    {"ports", Fate::kNoMeaning, "ports are chosen by Muster and by the program"},
    {"lifecycle", Fate::kNotYet, "nothing runs before or behind the workers"},
    {"livenessProbe", Fate::kNoMeaning, kProbes},
    {"readinessProbe", Fate::kNoMeaning, kProbes},
    {"startupProbe", Fate::kNoMeaning, kProbes},
    {"resizePolicy", Fate::kNoMeaning, "there are no pods"},
    {"restartPolicy", Fate::kNoMeaning, "spec.restart says how often"},
    {"securityContext", Fate::kNoMeaning, "workers have the rights of who calls muster run"},
    {"stdin", Fate::kNoMeaning, kTerminal},
    {"stdinOnce", Fate::kNoMeaning, kTerminal},
    {"tty", Fate::kNoMeaning, kTerminal},
    {"terminationMessagePath", Fate::kNoMeaning, "fault.json has the last words of a worker"},
    {"terminationMessagePolicy", Fate::kNoMeaning, "fault.json has the last words of a worker"},
    {"volumeDevices", Fate::kNotYet, "nothing is mounted: workers see this host's devices"},
    {"envFrom", Fate::kNotYet,
     "there are no config maps and secrets: export their variables before muster run"},
}};

bool IsSecret(std::string_view name) {
  constexpr std::string_view kMarks[] = {"TOKEN",  "SECRET",     "PASSWORD",
                                         "PASSWD", "CREDENTIAL", "_KEY"};
  return std::ranges::any_of(
      kMarks, [&](std::string_view mark) { return name.find(mark) != std::string_view::npos; });
}

bool IsVariableName(std::string_view name) {
  return !name.empty() && (name[0] < '0' || name[0] > '9') && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// $(NAME) of a variable that is known; "$$" is a dollar. As Kubernetes has it.
std::string Expand(std::string_view text, const Map& variables) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    if (text[i + 1] == '$') {
      out += text[i++];
      continue;
    }
    const auto end = text[i + 1] == '(' ? text.find(')', i) : std::string_view::npos;
    const auto found = end == std::string_view::npos
                           ? variables.end()
                           : variables.find(text.substr(i + 2, end - i - 2));
    if (found == variables.end()) {
      out += text[i];
      continue;
    }
    out += found->second;
    i = end;
  }
  return out;
}

void ReadVariable(const Value& item, const std::string& path, Map& variables, Import& import) {
  Fields entry(item, path, import);
  const Value* name = entry.Text("name");
  const Value* value = entry.Text("value");
  const Value* from = entry.Take("valueFrom");
  entry.Finish();
  if (name == nullptr || !IsVariableName(name->text)) {
    const Value& place = name == nullptr ? item : *name;
    return import.Refuse(place, path, fmt::format("'{}.name' names no variable", path));
  }
  if (from != nullptr) {
    return import.Note(
        Fate::kNotYet, *from, path,
        fmt::format("{} comes from the cluster: export it before muster run", name->text));
  }
  Value shown{.kind = Value::Kind::kText, .place = item.place};
  shown.text = value == nullptr ? "" : Expand(value->text, variables);
  variables.insert_or_assign(name->text, shown.text);
  const bool secret = IsSecret(name->text);
  import.out.environment.push_back({name->text, shown.text, secret, item.place});
  shown.text = name->text + (secret ? "=(not shown)" : "=" + shown.text);
  import.Note(Fate::kBeside, shown, path,
              fmt::format("export {}: workers have the environment of muster run", name->text));
}

void ReadEnvironment(Fields& container, Map& variables, Import& import) {
  const Value* list = container.List("env");
  if (list == nullptr) return;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    ReadVariable(list->items[i], fmt::format("{}[{}]", container.PathOf("env"), i), variables,
                 import);
  }
}

/// What one entry of limits or requests means for the job.
void ReadResource(const Value& amount, std::string_view name, const std::string& path,
                  Import& import) {
  Resources& resources = import.out.job.resources;
  const bool gpu = name == "nvidia.com/gpu" || name == "amd.com/gpu";
  if (name != "cpu" && name != "memory" && !gpu) {
    return import.Note(Fate::kNotYet, amount, path, "only cpu, memory and GPUs are counted");
  }
  // A fraction of a GPU is none, and nobody has a million of them.
  constexpr std::uint64_t kMostMilli = 1'000'000'000'000;
  const std::uint64_t milli =
      IsScalar(amount) ? ReadQuantityMilli(amount.text).value_or(kMostMilli) : kMostMilli;
  const auto bytes = IsScalar(amount) ? ReadQuantityBytes(amount.text) : std::nullopt;
  const bool fits = name == "memory" ? bytes.has_value() : milli < kMostMilli;
  if (!fits || (gpu && (milli % 1000 != 0 || milli > 1'000'000'000))) {
    return import.Refuse(amount, path,
                         fmt::format("'{}' takes a quantity such as 8, 500m or 32Gi, found {}",
                                     path, Describe(amount)));
  }
  if (name == "cpu") {
    resources.cpu_milli = milli;
    import.Took(amount, path, "spec.resources.cpu", PrintCores(milli));
  } else if (gpu) {
    resources.gpu = static_cast<std::uint32_t>(milli / 1000);
    import.Took(amount, path, "spec.resources.gpu", std::to_string(resources.gpu));
  } else {
    resources.memory = *bytes;
    import.Took(amount, path, "spec.resources.memory", FormatExact(*bytes));
  }
}

void ReadResources(Fields& container, Import& import) {
  const Value* value = container.Take("resources");
  if (value == nullptr) return;
  Fields resources(*value, container.PathOf("resources"), import);
  const Value* limits = resources.Take("limits");
  const Value* requests = resources.Take("requests");
  if (const Value* claims = resources.Take("claims")) {
    import.Note(Fate::kNotYet, *claims, resources.PathOf("claims"),
                "only cpu, memory and GPUs are counted");
  }
  resources.Finish();
  std::vector<std::string_view> limited;
  if (limits != nullptr) {
    for (const Member& member : limits->members) {
      limited.push_back(member.key);
      ReadResource(member.value, member.key, resources.PathOf("limits." + member.key), import);
    }
  }
  if (requests == nullptr) return;
  for (const Member& member : requests->members) {
    const std::string path = resources.PathOf("requests." + member.key);
    if (std::ranges::find(limited, member.key) == limited.end()) {
      ReadResource(member.value, member.key, path, import);
    } else {
      import.Note(Fate::kNoMeaning, member.value, path, "the limit is taken");
    }
  }
}

void ReadMounts(Fields& container, Import& import) {
  const Value* mounts = container.List("volumeMounts");
  if (mounts == nullptr) return;
  for (std::size_t i = 0; i < mounts->items.size(); ++i) {
    std::string where = "its path";
    for (const Member& member : mounts->items[i].members) {
      if (member.key == "mountPath") where = ShortValue(member.value);
    }
    import.Note(Fate::kNotYet, mounts->items[i],
                fmt::format("{}[{}]", container.PathOf("volumeMounts"), i),
                fmt::format("nothing is mounted: {} must be there on every host", where));
  }
}

/// command, then args.
ContainerWords ReadWords(Fields& container, const Value& place, const Map& variables,
                         Import& import) {
  ContainerWords words{.words = {}, .from = nullptr, .path = container.PathOf("command")};
  for (const std::string_view key : {"command", "args"}) {
    const Value* list = container.List(key);
    if (list == nullptr || list->items.empty()) continue;
    if (words.from == nullptr) {
      words.from = list;
      words.path = container.PathOf(key);
    } else {
      import.Note(Fate::kTaken, *list, container.PathOf(key), "spec.command, behind the command");
    }
    for (const Value& item : list->items) {
      if (IsScalar(item)) {
        words.words.push_back(Expand(item.text, variables));
      } else {
        import.Refuse(
            item, container.PathOf(key),
            fmt::format("'{}' takes text, found {}", container.PathOf(key), Describe(item)));
      }
    }
  }
  if (words.from != nullptr && !words.path.ends_with(".args")) return words;
  const Value& where = words.from == nullptr ? place : *words.from;
  const std::string path = container.PathOf("command");
  if (import.entry_point.empty()) {
    import.Refuse(where, path,
                  fmt::format("'{}' is missing: the image's own entry point starts the program, "
                              "and images are not read; write it behind the file's name: muster "
                              "import hyperpod FILE -- COMMAND",
                              path));
    words.words.clear();
    return words;
  }
  words.from = &where;
  words.path = path;
  words.words.insert(words.words.begin(), import.entry_point.begin(), import.entry_point.end());
  return words;
}

}  // namespace

LauncherShape ReadContainer(const Value& value, const std::string& path,
                            const PodSurroundings& surroundings, Import& import) {
  Fields container(value, path, import);
  if (!container.valid()) return {};
  container.Others(kFields);
  // The operator sets these; a variable of the manifest's own wins.
  Map variables = {{"NNODES", surroundings.nodes},
                   {"NPROC_PER_NODE", surroundings.ranks_per_node},
                   {"AGENT_HOST", "0.0.0.0"},
                   {"AGENT_PORT", "8080"}};
  ReadEnvironment(container, variables, import);
  ReadResources(container, import);
  ReadMounts(container, import);
  if (const Value* folder = container.Text("workingDir")) {
    import.Note(Fate::kBeside, *folder, container.PathOf("workingDir"),
                "workers start where muster run is called: cd there");
    import.out.folder = folder->text;
  }
  const ContainerWords words = ReadWords(container, value, variables, import);
  container.Finish();
  if (words.words.empty()) return {};
  return ReadLauncher(words, variables, import);
}

}  // namespace muster::spec

// muster import hyperpod FILE: another system's job file, unchanged, as a job file of ours. stdout
// is the job file; stderr says of every field where it went.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/absent.h"
#include "base/text.h"
#include "cli/verb.h"
#include "spec/import/hyperpod.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;
using Fate = spec::ImportedField::Fate;

struct Arguments {
  std::string file;
  std::vector<std::string> command;
  bool quiet = false;
};

/// One line a field, those of a fate together: what was taken last, nearest to the job file.
std::string Table(const spec::ImportedJob& imported, std::string_view file) {
  constexpr std::pair<Fate, std::string_view> kGroups[] = {
      {Fate::kNoMeaning, "without a meaning here"},
      {Fate::kNotYet, "not done yet"},
      {Fate::kBeside, "to be given beside the job file"},
      {Fate::kTaken, "in the job file"}};
  std::string text;
  for (const auto& [fate, title] : kGroups) {
    std::string lines;
    std::size_t count = 0;
    for (const spec::ImportedField& field : imported.fields) {
      if (field.fate != fate) continue;
      ++count;
      lines += fmt::format("  {}:{}  {}{}{}\n      {} {}\n", field.place.line, field.place.column,
                           PlainLine(field.path), field.value.empty() ? "" : ": ", field.value,
                           fate == Fate::kTaken ? "→" : "–", PlainLine(field.words));
    }
    if (count > 0)
      text += fmt::format("{}: {} {}\n{}", file, Counted(count, "field"), title, lines);
  }
  return text;
}

std::string Document(const spec::ImportedJob& imported) {
  Json fields = Json::array();
  for (const spec::ImportedField& field : imported.fields) {
    fields.push_back({{"line", field.place.line},
                      {"column", field.place.column},
                      {"field", field.path},
                      {"value", field.value},
                      {"fate", NameOf(field.fate)},
                      {"words", field.words}});
  }
  Json variables = Json::array();
  for (const spec::ImportedVariable& variable : imported.environment) {
    variables.push_back({{"name", variable.name},
                         {"value", variable.secret ? Json() : Json(variable.value)},
                         {"line", variable.place.line}});
  }
  const Json document = {{"job", Json::parse(spec::PrintJobJson(imported.job))},
                         {"environment", std::move(variables)},
                         {"folder", imported.folder.empty() ? Json() : Json(imported.folder)},
                         {"options", imported.options},
                         {"fields", std::move(fields)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<int> Import(const Arguments& arguments, bool json) {
  auto read = PosixFiles().ReadAll(arguments.file, spec::kMaxJobBytes);
  if (!read && read.error().code() == Code::kNotFound)
    return Absent("manifest", arguments.file, "look at the name");
  const std::string text = MUSTER_TRY(Within("read the manifest", std::move(read)));
  const auto imported = MUSTER_TRY(spec::ImportHyperPod(text, arguments.file, arguments.command));
  const std::string name = PlainLine(arguments.file);
  if (!arguments.quiet && !json) Note(Table(imported, name));
  MUSTER_TRY(json ? Print(Document(imported))
                  : PrintText(spec::PrintImported(imported, name, "job.yaml")));
  return 0;
}

}  // namespace

void AddImport(CLI::App& parent, Invocation& invocation) {
  CLI::App* import =
      AddSubcommand(parent, "import", "Turn another system's job file into a job file", invocation);
  import->require_subcommand(1);
  CLI::App* app =
      AddSubcommand(*import, "hyperpod",
                    "A manifest of SageMaker HyperPod's training operator, as it is", invocation);
  app->footer(
      "muster import hyperpod train.yaml > job.yaml\n"
      "muster import hyperpod train.yaml -- torchrun --nproc-per-node 8 train.py > job.yaml\n\n"
      "stderr says of every field of the manifest where it went: docs/reference/hyperpod.md.");
  auto arguments = std::make_shared<Arguments>();
  app->add_option("FILE", arguments->file, "The manifest: kind HyperPodPyTorchJob, YAML or JSON")
      ->required();
  app->add_option(
      "COMMAND", arguments->command,
      "Behind --: what the image's entry point starts, where the manifest has no command");
  app->add_flag("--quiet", arguments->quiet, "Only the job file");
  app->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] { return Import(*arguments, invocation.json); };
  });
}

}  // namespace muster::cli

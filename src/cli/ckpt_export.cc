// muster ckpt export CKPT FILE: the tensors of one group as a plain safetensors file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/ckpt_open.h"
#include "cli/verb.h"

namespace muster::cli {
namespace {

struct Arguments {
  std::string path;
  std::string output;
  std::string group{checkpoint::kParamGroup};
};

Result<int> Run(const Arguments& arguments, bool json) {
  checkpoint::Checkpoint opened = MUSTER_TRY(OpenCheckpoint(arguments.path));
  MUSTER_TRY(checkpoint::Export(opened, PosixFiles(), arguments.group, arguments.output));
  if (json) {
    MUSTER_TRY(PrintJson({{"path", opened.path()},
                          {"output", arguments.output},
                          {"group", arguments.group},
                          {"tensors", opened.manifest().index.entries.size()}}));
    return 0;
  }
  Note(fmt::format("muster: wrote {} of {} to {}\n",
                   Counted(opened.manifest().index.entries.size(), "tensor"), opened.path(),
                   arguments.output));
  return 0;
}

}  // namespace

void AddCkptExport(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(parent, "export", "Write a plain safetensors file", invocation);
  const auto arguments = std::make_shared<Arguments>();
  app->add_option("CKPT", arguments->path, "A checkpoint, or a folder whose newest is meant")
      ->required();
  app->add_option("FILE", arguments->output, "The file to write; it must not exist")->required();
  app->add_option("--group", arguments->group,
                  "The group whose tensors are written (muster ckpt show lists the groups)")
      ->capture_default_str();
  app->callback([&invocation, arguments] {
    invocation.action = [&invocation, arguments] { return Run(*arguments, invocation.json); };
  });
}

}  // namespace muster::cli

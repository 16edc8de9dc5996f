// muster ckpt …: looking at checkpoints without torch and without the trainer.
#include <CLI/CLI.hpp>

#include "cli/verb.h"

namespace muster::cli {

void AddCkptLs(CLI::App& parent, Invocation& invocation);
void AddCkptShow(CLI::App& parent, Invocation& invocation);
void AddCkptVerify(CLI::App& parent, Invocation& invocation);
void AddCkptDigest(CLI::App& parent, Invocation& invocation);
void AddCkptDiff(CLI::App& parent, Invocation& invocation);
void AddCkptExport(CLI::App& parent, Invocation& invocation);

void AddCkpt(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "ckpt", "List, check, compare and export checkpoints", invocation);
  app->require_subcommand(1);
  app->footer(
      "CKPT is a step-… folder, a folder of checkpoints, or a run folder, which stands for the\n"
      "folder its job saves to. Of a folder, the newest checkpoint is meant; ls lists them all.\n"
      "The format is docs/formats/checkpoint.md.");
  AddCkptLs(*app, invocation);
  AddCkptShow(*app, invocation);
  AddCkptVerify(*app, invocation);
  AddCkptDigest(*app, invocation);
  AddCkptDiff(*app, invocation);
  AddCkptExport(*app, invocation);
}

}  // namespace muster::cli

// muster data …: the verbs of the data engine.
#include <CLI/CLI.hpp>

#include "cli/verb.h"

namespace muster::cli {

void AddDataPack(CLI::App& parent, Invocation& invocation);
void AddDataVerify(CLI::App& parent, Invocation& invocation);
void AddDataLs(CLI::App& parent, Invocation& invocation);

void AddData(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "data", "Pack, check and list datasets of images", invocation);
  app->require_subcommand(1);
  AddDataPack(*app, invocation);
  AddDataVerify(*app, invocation);
  AddDataLs(*app, invocation);
}

}  // namespace muster::cli

// muster explain FILE: the job as Muster understands it, every key in its place, or every fault of
// the file.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/verb.h"
#include "spec/job.h"

namespace muster::cli {
namespace {

Result<int> Explain(const std::string& path, bool json) {
  const spec::ParsedJob parsed = MUSTER_TRY(spec::ReadJob(PosixFiles(), path));
  MUSTER_TRY(json ? Print(spec::PrintJobJson(parsed.job)) : PrintText(spec::PrintJobYaml(parsed)));
  return 0;
}

}  // namespace

void AddExplain(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(parent, "explain",
                                "Check a job file and print it back normalised, defaults filled in",
                                invocation);
  auto path = std::make_shared<std::string>();
  app->add_option("FILE", *path, "The job file, YAML or JSON")->required();
  app->callback([path, &invocation] {
    invocation.action = [path, &invocation] { return Explain(*path, invocation.json); };
  });
}

}  // namespace muster::cli

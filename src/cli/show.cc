// muster show RUN: what happened, in a few lines.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/verb.h"
#include "profile/report/report_json.h"
#include "profile/report/summary.h"

namespace muster::cli {
namespace {

Result<int> Show(const std::string& folder, bool json) {
  const auto files = MUSTER_TRY(profile::RunFiles::Open(folder));
  const profile::RunReport report = profile::BuildReport(MUSTER_TRY(profile::ReadRun(files)));
  MUSTER_TRY(json ? Print(profile::ReportJson(report)) : PrintText(profile::SummaryText(report)));
  return 0;
}

}  // namespace

void AddShow(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "show", "What happened in a run, in a few lines", invocation);
  auto folder = std::make_shared<std::string>();
  app->add_option("RUN", *folder, "The run's folder")->required();
  app->callback([folder, &invocation] {
    invocation.action = [folder, &invocation] { return Show(*folder, invocation.json); };
  });
}

}  // namespace muster::cli

// muster report RUN: the whole run as one HTML page, or as JSON.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/durable.h"
#include "base/text.h"
#include "cli/verb.h"
#include "profile/report/page/report_page.h"
#include "profile/report/report_json.h"

namespace muster::cli {
namespace {

struct ReportFlags {
  std::string folder;
  std::string output;
};

Result<int> Report(const ReportFlags& flags, bool json) {
  const auto files = MUSTER_TRY(profile::RunFiles::Open(flags.folder));
  const profile::RunReport report = profile::BuildReport(MUSTER_TRY(profile::ReadRun(files)));
  const std::string output =
      flags.output.empty() && !json ? flags.folder + "/report.html" : flags.output;
  if (!output.empty()) {
    const std::string page = profile::ReportPage(report);
    // Logs and configuration are in it, so it is as private as they are.
    MUSTER_TRY(Within("write the report", WriteDurably(PosixFiles(), output, AsBytes(page), 0600)));
    Note(fmt::format("{}\nwrote {}\n", PlainLine(profile::Verdict(report)), output));
  }
  if (json) MUSTER_TRY(Print(profile::ReportJson(report)));
  return 0;
}

}  // namespace

void AddReport(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(parent, "report",
                                "What happened in a run, as one HTML page or as JSON", invocation);
  auto flags = std::make_shared<ReportFlags>();
  app->add_option("RUN", flags->folder, "The run's folder")->required();
  app->add_option("-o,--output", flags->output,
                  "Where the page goes; RUN/report.html without it, none with --json alone");
  app->callback([flags, &invocation] {
    invocation.action = [flags, &invocation] { return Report(*flags, invocation.json); };
  });
}

}  // namespace muster::cli

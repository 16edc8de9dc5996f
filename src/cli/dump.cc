// muster dump [RUN]: where every rank of a running job stands, asked of its muster run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "agent/ctl/control_socket.h"
#include "agent/stacks/clusters.h"
#include "base/host_name.h"
#include "cli/verb.h"
#include "profile/live/newest_run.h"
#include "profile/report/records.h"
#include "profile/report/run_files.h"

namespace muster::cli {
namespace {

constexpr auto kLimit = std::chrono::seconds(15);
constexpr Bytes kFacts = 64_KiB;

/// Why nobody answers in this folder.
Error WhyNobody(const profile::RunFiles& files, const profile::RunFacts& facts) {
  if (files.Look("result.json")) {
    return Error(Code::kPrecondition, fmt::format("the run {} is over", files.folder()),
                 fmt::format("stacks from before a kill are in its stacks-N.json; how it ended: "
                             "muster show {}",
                             files.folder()));
  }
  if (facts.host != HostName()) {
    return Error(Code::kUnavailable,
                 fmt::format("the run is led by {}, and this is {}", facts.host, HostName()),
                 "use muster dump there; nothing was done");
  }
  if (!files.LockHeld()) {
    return Error(
        Code::kPrecondition, fmt::format("the run {} broke off", files.folder()),
        fmt::format("its muster run is gone; what is known: muster show {}", files.folder()));
  }
  return Error(Code::kUnavailable, fmt::format("the run {} takes no calls", files.folder()),
               "its folder is on a file system without sockets, or it only begins");
}

Result<int> Dump(const std::string& given, bool json) {
  const std::string folder = given.empty() ? MUSTER_TRY(profile::NewestRun("runs")) : given;
  const auto files = MUSTER_TRY(profile::RunFiles::Open(folder));
  const auto facts =
      MUSTER_TRY(profile::ReadRunFacts(MUSTER_TRY(files.ReadWhole("run.json", kFacts))));
  auto answer = agent::AskRun(folder, "dump", kLimit);
  if (!answer && answer.error().code() == Code::kNotFound) return WhyNobody(files, facts);
  const std::string text = MUSTER_TRY(std::move(answer));
  if (json) {
    MUSTER_TRY(Print(text + "\n"));
    return 0;
  }
  const auto processes = MUSTER_TRY(agent::stacks::FromJson(text));
  MUSTER_TRY(PrintText(processes.empty() ? "no rank runs at the moment\n"
                                         : agent::stacks::ToText(processes)));
  return 0;
}

}  // namespace

void AddDump(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(parent, "dump",
                                "Where the ranks of a running job stand: their stacks, the few "
                                "that differ first",
                                invocation);
  app->footer(
      "Native frames of every thread, and Python's. Ranks that stand at the same place are one\n"
      "entry. The ranks are held for some milliseconds and go on as before.");
  auto folder = std::make_shared<std::string>();
  app->add_option("RUN", *folder,
                  "The run's folder; without it the newest below ./runs that goes on, else the "
                  "newest");
  app->callback([folder, &invocation] {
    invocation.action = [folder, &invocation] { return Dump(*folder, invocation.json); };
  });
}

}  // namespace muster::cli

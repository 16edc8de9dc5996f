// muster doctor: whether this host is fit for a job, check by check. Exit code 0 unless a check
// fails, then 1.
#include <CLI/CLI.hpp>
#include <memory>

#include "agent/health/doctor.h"
#include "cli/verb.h"
#include "os/process.h"
#include "spec/env.h"

namespace muster::cli {
namespace {

using agent::health::DoctorOptions;

Result<int> Examine(DoctorOptions options, bool json) {
  if (!options.python.empty()) {
    options.environment = spec::ProcessEnviron();
    options.python = MUSTER_TRY(
        os::FindProgram(options.python, spec::ProcessEnv()("PATH").value_or("/usr/bin:/bin")));
  }
  const auto checks = agent::health::Examine(agent::health::ThisMachine(), options);
  MUSTER_TRY(json ? Print(CheckJson(checks)) : PrintText(CheckTable(checks)));
  return Healthy(checks) ? 0 : 1;
}

}  // namespace

void AddDoctor(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(parent, "doctor",
                                "Whether this host is fit for a job, check by check", invocation);
  app->footer(
      "Exit code 0 unless a check fails, then 1. It takes about a second, writes 8 MiB to "
      "/dev/shm\n"
      "and 16 MiB to the folder, and removes them: docs/reference/doctor.md.");
  auto options = std::make_shared<DoctorOptions>();
  app->add_option("--folder", options->folder, "Where run folders will be made; default: here")
      ->type_name("DIR");
  app->add_option("--python", options->python, "A Python that is to import torch")
      ->type_name("PROGRAM");
  app->add_option("--kernel-log", options->kernel_log,
                  "Records of the kernel's log; default: /dev/kmsg")
      ->type_name("FILE");
  app->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return Examine(*options, invocation.json); };
  });
}

}  // namespace muster::cli

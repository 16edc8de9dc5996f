// muster run JOB.yaml | muster run [torchrun's flags] SCRIPT… | muster run -n N -- CMD…: one job on
// this host, restarted when a worker dies. The exit code is that of the run: 0, the root cause's
// own, 93, or 128 + signal.
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "agent/coordinator/plan.h"
#include "agent/run_job.h"
#include "base/version.h"
#include "cli/run_options.h"
#include "cli/verb.h"
#include "spec/env.h"

namespace muster::cli {
namespace {

/// What is not as a user of torchrun expects it.
void TellDifferences(const RunFlags& flags, const agent::Policy& policy) {
  using Form = spec::torchrun::RunLine::Form;
  const spec::torchrun::Settings& torchrun = flags.torchrun;
  if (!torchrun.ignored.empty()) {
    Note(fmt::format("muster: without a meaning here: {}\n", torchrun.ignored));
  }
  const bool theirs = torchrun.used || flags.form == Form::kScript;
  const auto restarts = agent::MostRestarts(policy);
  if (!theirs || flags.form == Form::kJobFile || torchrun.max_restarts || restarts == 0) return;
  Note(fmt::format(
      "muster: unlike under torchrun, a rank that dies is started again, up to {} times; "
      "--max-restarts 0: never\n",
      restarts));
}

Result<int> Run(RunFlags flags, const Invocation& invocation) {
  flags.form = invocation.line.form;
  flags.nproc_given = invocation.line.Has("nproc-per-node");
  flags.torchrun = MUSTER_TRY(spec::torchrun::ReadSettings(invocation.line, spec::ProcessEnv()));
  const spec::Job job = MUSTER_TRY(JobFor(flags, invocation.program));
  agent::RunOptions options = MUSTER_TRY(OptionsFor(job, flags, invocation.program));
  options.version = Version();
  options.json = invocation.json;
  if (const auto keys = NotActedOn(job); !keys.empty()) {
    Note(fmt::format("muster: kept in the job, but not acted on yet: {}\n", fmt::join(keys, ", ")));
  }
  TellDifferences(flags, options.policy);
  const agent::RunOutcome outcome = MUSTER_TRY(agent::RunJob(options));
  if (invocation.json) MUSTER_TRY(Print(outcome.result_json));
  // A log write that hangs in the kernel still uses what destructors would free.
  if (outcome.hung_writer) ::_exit(outcome.exit_code);
  return outcome.exit_code;
}

}  // namespace

void AddRun(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(
      parent, "run", "Run a job on this machine; when a rank dies, the run goes on", invocation);
  app->footer(
      "muster run job.yaml\n"
      "muster run --nproc-per-node 2 train.py --epochs 3\n"
      "muster run -n 2 -- PROGRAM --epochs 3\n\n"
      "Every flag of torchrun is taken too, in its spellings and with its PET_ variables:\n"
      "docs/guide/from-torchrun.md. What stands behind a script or -- is not read.");
  auto flags = std::make_shared<RunFlags>();
  app->add_option("JOB|SCRIPT|CMD", flags->words,
                  "A job file; a Python script, or -m and a module; or -- and a command");
  app->add_option("-n,--ranks", flags->ranks, "Worker processes on this machine");
  app->add_option("--name", flags->name, "Name of the run; default: that of the job or command");
  app->add_option("--run-dir", flags->folder, "Run folder; default: runs/NAME-TIME-xxxx");
  app->add_option("--checkpoint-dir", flags->checkpoint_dir,
                  "Checkpoints; default: the job's, in the run folder. Name another run's to go on "
                  "from there");
  app->add_option("--preload", flags->preload,
                  "What Python imports once, before the ranks are forked from there: modules with "
                  "commas; none: every rank is executed; auto (default): torch when the script "
                  "imports it");
  // Read with torchrun's flags, where it has more spellings and a variable; here for the help.
  app->add_option_function<std::uint32_t>(
      "--max-restarts", [](std::uint32_t) {},
      "Restarts before the run fails; 0: none; default: the job's, or 3 and 1 full");
  app->add_flag("--restart-all", flags->restart_all,
                "When a rank dies, start all again from the newest checkpoint; default: keep those "
                "that can go on");
  app->add_flag("--report-hangs", flags->report_hangs,
                "Say that a rank hangs and leave it alone; default: kill it and recover");
  app->add_option("--grace", flags->grace_s,
                  "Seconds between TERM and KILL when workers are stopped; default 30");
  app->add_flag("--quiet", flags->quiet,
                "Do not show the workers' output; it is in the run folder");
  app->callback([flags, &invocation] {
    invocation.action = [flags, &invocation] { return Run(*flags, invocation); };
  });
}

}  // namespace muster::cli

// muster run JOB.yaml | muster run [torchrun's flags] SCRIPT… | muster run -n N -- CMD…: one job on
// this host, restarted when a worker dies. The exit code is that of the run: 0, the root cause's
// own, 93, or 128 + signal.
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "agent/coordinator/plan.h"
#include "agent/run_job.h"
#include "base/version.h"
#include "cli/run_options.h"
#include "cli/verb.h"
#include "spec/env.h"

namespace muster::cli {
namespace {

/// A flag that names ranks the run does not have. It is taken all the same: under torchrun one line
/// may serve jobs of several sizes.
void TellAbsentRanks(const RunFlags& flags, std::uint32_t ranks) {
  const spec::torchrun::ShownStreams& shown = flags.torchrun.shown;
  const std::pair<std::string_view, std::set<std::uint32_t>> named[] = {
      {"redirects", shown.redirected.Named()},
      {"tee", shown.teed.Named()},
      {"local-ranks-filter", shown.only},
  };
  for (const auto& [flag, all] : named) {
    const std::set<std::uint32_t> absent(all.lower_bound(ranks), all.end());
    if (absent.empty()) continue;
    const std::string by = flags.line.Has(flag) ? fmt::format("--{}", flag)
                                                : VariableOf(**spec::torchrun::FindFlag(flag));
    Note(fmt::format(
        "muster: {} names {} {}, and there {}{}\n", by, absent.size() == 1 ? "rank" : "ranks",
        fmt::join(absent, ", "),
        ranks == 1 ? "is only rank 0" : fmt::format("are ranks 0 to {}", ranks - 1),
        absent.size() == all.size() && flag == "local-ranks-filter" ? ": nothing is shown" : ""));
  }
}

/// What is not as a user of torchrun expects it.
void TellDifferences(const RunFlags& flags, const agent::Policy& policy) {
  using Form = spec::torchrun::RunLine::Form;
  const spec::torchrun::Settings& torchrun = flags.torchrun;
  if (!torchrun.ignored.empty()) {
    Note(fmt::format("muster: without a meaning here: {}\n", torchrun.ignored));
  }
  const bool theirs = torchrun.used || flags.line.form == Form::kScript;
  const auto restarts = agent::MostRestarts(policy);
  if (!theirs || flags.line.form == Form::kJobFile || torchrun.max_restarts || restarts == 0)
    return;
  Note(fmt::format(
      "muster: unlike under torchrun, a rank that dies is started again, up to {} times; "
      "--max-restarts 0: never\n",
      restarts));
}

Result<int> Run(RunFlags flags, const Invocation& invocation) {
  MUSTER_TRY(ReadTorchrun(invocation.line, spec::ProcessEnv(), flags));
  const spec::Job job = MUSTER_TRY(JobFor(flags, invocation.program));
  agent::RunOptions options = MUSTER_TRY(OptionsFor(job, flags, invocation.program));
  options.version = Version();
  options.json = invocation.json;
  if (const auto keys = NotActedOn(job); !keys.empty()) {
    Note(fmt::format("muster: kept in the job, but not acted on yet: {}\n", fmt::join(keys, ", ")));
  }
  TellDifferences(flags, options.policy);
  TellAbsentRanks(flags, options.ranks);
  const agent::RunOutcome outcome = MUSTER_TRY(agent::RunJob(options));
  if (invocation.json) MUSTER_TRY(Print(outcome.result_json));
  // A log write that hangs in the kernel still uses what destructors would free.
  if (outcome.hung_writer) ::_exit(outcome.exit_code);
  return outcome.exit_code;
}

}  // namespace

void AddRun(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "run",
                    "Run a job here or on several hosts; when a rank dies, it goes on", invocation);
  app->footer(
      "muster run job.yaml\n"
      "muster run --nproc-per-node 2 train.py --epochs 3\n"
      "muster run -n 2 -- PROGRAM --epochs 3\n\n"
      "Every flag of torchrun is taken too, in its spellings and with its PET_\n"
      "variables. What stands behind a script or -- is not read.\n"
      "docs/guide/from-torchrun.md");
  auto flags = std::make_shared<RunFlags>();
  AddRunFlags(*app, *flags);
  app->callback([flags, &invocation] {
    invocation.action = [flags, &invocation] { return Run(*flags, invocation); };
  });
}

}  // namespace muster::cli

#include "cli/run_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace muster::cli {
namespace {

using Words = std::vector<std::string>;
using Form = spec::torchrun::RunLine::Form;

Words Given(std::string_view flag, const std::string& value) {
  if (value.empty()) return {};
  return {fmt::format("--{}", flag), value};
}

Words Given(std::string_view flag, bool on) {
  return on ? Words{fmt::format("--{}", flag)} : Words{};
}

constexpr std::string_view kInJob = "it is in the job";
constexpr std::string_view kAlways = "one node, always";
constexpr std::string_view kOnce = "it is about one run";

constexpr Lasting kLasting[] = {
    {.flag = "help", .why = kOnce},
    {.flag = "json", .why = kOnce},
    {.flag = "run-dir", .why = kOnce},
    {.flag = "ranks", .why = kInJob},
    {.flag = "name", .why = kInJob},
    {.flag = "checkpoint-dir", .why = kInJob},
    {.flag = "restart-all", .why = kInJob},
    {.flag = "max-restarts", .why = kInJob},
    {.flag = "hang-limit", .why = kInJob},
    {.flag = "node-lease", .why = kInJob},
    {.flag = "nproc-per-node", .why = kInJob},
    {.flag = "module", .why = kInJob},
    {.flag = "no-python", .why = kInJob},
    {.flag = "run-path", .why = kInJob},
    {.flag = "nnodes", .why = kInJob},
    {.flag = "nodes", .words = [](const RunFlags& f) { return Given("nodes", f.nodes); }},
    {.flag = "ssh", .words = [](const RunFlags& f) { return Given("ssh", f.ssh); }},
    {.flag = "listen", .words = [](const RunFlags& f) { return Given("listen", f.listen); }},
    {.flag = "standalone", .why = kAlways},
    {.flag = "preload",
     .words =
         [](const RunFlags& f) { return Given("preload", f.preload == "auto" ? "" : f.preload); }},
    {.flag = "report-hangs",
     .words = [](const RunFlags& f) { return Given("report-hangs", f.report_hangs); }},
    {.flag = "kernel-log",
     .words = [](const RunFlags& f) { return Given("kernel-log", f.kernel_log); }},
    {.flag = "grace",
     .words =
         [](const RunFlags& f) {
           return Given("grace", f.grace_s ? fmt::format("{}", *f.grace_s) : "");
         }},
    // --grace wins over the variable, and naming both is refused.
    {.flag = "shutdown-timeout",
     .words =
         [](const RunFlags& f) {
           const auto seconds = f.torchrun.shutdown_s;
           return Given("shutdown-timeout", seconds && !f.grace_s ? std::to_string(*seconds) : "");
         }},
    {.flag = "role",
     .words =
         [](const RunFlags& f) {
           return Given("role", f.torchrun.role == "default" ? "" : f.torchrun.role);
         }},
    {.flag = "rdzv-id",
     .words = [](const RunFlags& f) { return Given("rdzv-id", f.torchrun.run_id); }},
    {.flag = "virtual-local-rank",
     .words =
         [](const RunFlags& f) {
           return Given("virtual-local-rank", f.torchrun.virtual_local_rank);
         }},
    {.flag = "log-dir",
     // --run-dir wins over the variable, but only for that run.
     .words = [](const RunFlags& f) { return Given("log-dir", f.torchrun.log_dir); }},
    {.flag = "quiet", .words = [](const RunFlags& f) { return Given("quiet", f.quiet); }},
    {.flag = "line-prefix",
     .words = [](const RunFlags& f) { return Given("line-prefix", f.torchrun.line_prefix); }},
    {.flag = "redirects",
     .words =
         [](const RunFlags& f) { return Given("redirects", f.torchrun.shown.redirected.Text()); }},
    {.flag = "tee",
     .words = [](const RunFlags& f) { return Given("tee", f.torchrun.shown.teed.Text()); }},
    {.flag = "local-ranks-filter",
     .words =
         [](const RunFlags& f) {
           return Given("local-ranks-filter", spec::torchrun::RanksText(f.torchrun.shown.only));
         }},
};

/// Ours and torchrun's for one thing: nobody can tell which of two values was meant.
Status CheckSynonyms(const RunFlags& flags) {
  const struct {
    std::string_view ours;
    bool given;
    std::string_view theirs;
    std::string_view what;
  } pairs[] = {
      {"--ranks", flags.ranks.has_value(), "nproc-per-node", "are the same"},
      {"--grace", flags.grace_s.has_value(), "shutdown-timeout", "are the same"},
      {"--run-dir", !flags.folder.empty(), "log-dir", "both say where the run folder is"},
  };
  for (const auto& pair : pairs) {
    if (!pair.given || !flags.line.Has(pair.theirs)) continue;
    return Error(Code::kInvalid,
                 fmt::format("{} and --{} {}; both were given", pair.ours, pair.theirs, pair.what),
                 "leave one away; nothing was made");
  }
  return Ok();
}

}  // namespace

void AddRunFlags(CLI::App& run, RunFlags& flags) {
  run.add_option("JOB|SCRIPT|CMD", flags.words,
                 "A job file; a Python script, or -m and a module; or -- and a command");
  run.add_option("-n,--ranks", flags.ranks, "Worker processes on each node");
  run.add_option("--name", flags.name, "Name of the run; default: that of the job or command")
      ->type_name("NAME");
  run.add_option("--run-dir", flags.folder, "Run folder; default: runs/NAME-TIME-xxxx")
      ->type_name("DIR");
  run.add_option("--checkpoint-dir", flags.checkpoint_dir,
                 "Checkpoints; default: the job's, in the run folder. Name another run's to go on "
                 "from there")
      ->type_name("DIR");
  run.add_option("--preload", flags.preload,
                 "What Python imports once, before the ranks are forked from there: modules with "
                 "commas; none: every rank is executed; auto (default): torch when the script "
                 "imports it")
      ->type_name("MODULES");
  // Read with torchrun's flags, where it has more spellings and a variable; here for the help.
  run.add_option_function<std::uint32_t>(
      "--max-restarts", [](std::uint32_t) {},
      "Restarts before the run fails; 0: none; default: the job's, or 3 and 1 full");
  run.add_flag("--restart-all", flags.restart_all,
               "When a rank dies, start all again from the newest checkpoint; default: keep those "
               "that can go on");
  run.add_flag("--report-hangs", flags.report_hangs,
               "Say that a rank hangs and leave it alone; default: kill it and recover");
  run.add_option("--kernel-log", flags.kernel_log,
                 "File of kernel records to follow instead of /dev/kmsg")
      ->type_name("FILE");
  run.add_option("--hang-limit", flags.hang_limit_s,
                 "Seconds that ranks of a program without Muster's heartbeat may stand still, "
                 "before the outlier is killed; default: the job's, or it is only told");
  run.add_option("--grace", flags.grace_s,
                 "Seconds between TERM and KILL when workers are stopped; default 30");
  run.add_option("--nodes", flags.nodes,
                 "Hosts with commas: an agent is started on each by ssh; localhost is this one. "
                 "More than --nnodes are spares")
      ->type_name("HOSTS");
  run.add_option("--node-lease", flags.node_lease_s,
                 "Seconds that a node may be silent before it is given up; default: the job's, 15");
  run.add_option("--ssh", flags.ssh,
                 "How a host is reached; default: ssh -o BatchMode=yes, which asks for nothing")
      ->type_name("COMMAND");
  run.add_option(
         "--listen", flags.listen,
         "With several nodes: HOST:PORT where their agents dial; default: this host's address "
         "towards them, any free port")
      ->type_name("HOST:PORT");
  run.add_flag("--quiet", flags.quiet, "Do not show the workers' output; it is in the run folder");
  run.add_option("--line-prefix", flags.line_prefix,
                 "What stands before a line of a worker, instead of [rank generation]; ${rank}, "
                 "${local_rank} and ${role_name} are replaced")
      ->type_name("TEXT");
}

Status ReadTorchrun(const spec::torchrun::RunLine& line, const spec::EnvLookup& lookup,
                    RunFlags& flags) {
  flags.line = line;
  flags.torchrun = MUSTER_TRY(spec::torchrun::ReadSettings(line, lookup));
  if (!flags.line_prefix.empty()) flags.torchrun.line_prefix = flags.line_prefix;
  return CheckSynonyms(flags);
}

std::span<const Lasting> LastingFlags() { return kLasting; }

std::vector<std::string> WordsToGoOn(const RunFlags& flags) {
  std::vector<std::string> words;
  for (const Lasting& row : kLasting) {
    if (row.words == nullptr) continue;
    Words more = row.words(flags);
    words.insert(words.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  }
  return words;
}

}  // namespace muster::cli

#include "cli/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "agent/health/kernel_log.h"
#include "agent/launch/launcher.h"
#include "agent/launch/python_command.h"
#include "agent/shim/protocol.h"
#include "base/absent.h"
#include "base/durable.h"
#include "cli/run_program.h"
#include "profile/report/go_on.h"
#include "spec/command.h"
#include "spec/env.h"
#include "spec/visible_devices.h"

namespace muster::cli {
namespace {

using Form = spec::torchrun::RunLine::Form;

constexpr double kMostGrace = 3600;
constexpr double kMostSilence = 30 * 86400;
constexpr std::uint32_t kMostRestarts = 1'000'000;

spec::Duration Seconds(double count) {
  return std::chrono::duration_cast<spec::Duration>(std::chrono::duration<double>(count));
}

std::uint32_t CountGpus() {
  std::uint32_t count = 0;
  while (::access(fmt::format("/dev/nvidia{}", count).c_str(), F_OK) == 0) ++count;
  return count;
}

Result<std::uint32_t> RanksOf(const spec::RanksPerNode& ranks) {
  const std::uint32_t gpus =
      spec::CountVisible(spec::ProcessEnv()("CUDA_VISIBLE_DEVICES"), CountGpus());
  switch (ranks.kind) {
    case spec::RanksPerNode::Kind::kCount:
      return ranks.count;
    case spec::RanksPerNode::Kind::kCpu:
      return agent::AvailableCores();
    case spec::RanksPerNode::Kind::kAuto:
      return gpus > 0 ? gpus : agent::AvailableCores();
    case spec::RanksPerNode::Kind::kGpu:
      break;
  }
  if (gpus == 0) {
    return Error(Code::kPrecondition, "one rank per GPU, but there is no GPU here",
                 "use a number, 'cpu' or 'auto'; nothing was started");
  }
  return gpus;
}

std::vector<std::string> Split(const std::string& text, char mark) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == mark) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// "a,b" → a, b; every one a dotted name.
Result<std::vector<std::string>> ModulesOf(const std::string& list) {
  std::vector<std::string> modules = Split(list, ',');
  const auto is_name = [](const std::string& module) {
    return !module.empty() && module.find_first_of(" \t/\\=-") == std::string::npos;
  };
  if (std::ranges::all_of(modules, is_name)) return modules;
  return Error(Code::kInvalid, fmt::format("--preload is '{}'", list),
               "give names of modules with commas between, as torch,mymodel; nothing was made");
}

/// How ranks come to life: copied from the trainer, from a Python that has imported what they need,
/// or executed.
Status SetZygote(const std::string& preload, agent::RunOptions& options) {
  const auto python = agent::ParsePython(options.command);
  const bool asked = preload != "auto" && preload != "none";
  if (asked && !python) {
    return Error(Code::kInvalid,
                 fmt::format("--preload {}: the command is not python [FLAGS] SCRIPT, -m MODULE or "
                             "-c CODE",
                             preload),
                 "leave --preload away, or start the script by python; nothing was made");
  }
  if (IsTrainer(options.program)) {
    options.zygote = {options.program, "--zygote", "3"};
  } else if (python && preload != "none") {
    const auto modules =
        asked ? MUSTER_TRY(ModulesOf(preload))
              : agent::GuessPreload(PosixFiles(), options.command, *python, AbsolutePath("."));
    const bool source = agent::IsSource(PosixFiles(), options.command, *python, AbsolutePath("."));
    if (modules.empty() || !source) return Ok();
    options.zygote = agent::PythonZygote(options.command, *python, modules);
    options.preload = fmt::format("{}", fmt::join(modules, ", "));
  }
  return Ok();
}

Result<std::string> FindShim(const std::string& folder) {
  std::string shim = folder + "/muster-shim";
  if (::access(shim.c_str(), X_OK) == 0) return shim;
  return Error(Code::kNotFound, shim + " is missing",
               "muster-shim is installed beside muster; install both");
}

/// Where a path of the job leads, seen from any folder.
std::string Absolute(const std::string& path) {
  return path.starts_with("s3://") ? path : AbsolutePath(path);
}

/// The data where workers find it, whatever folder they change to.
void MakeDataAbsolute(spec::Job& job) {
  for (spec::DataSource& source : job.data) source.at = Absolute(spec::DataPath(source));
}

/// What this machine must have before anything is created.
Status CheckSupplies(const spec::Job& job) {
  if (const std::uint32_t gpus = CountGpus(); job.resources.gpu > gpus) {
    return Error(
        Code::kPrecondition,
        fmt::format("the job asks for {} GPUs; this machine has {}", job.resources.gpu, gpus),
        "set spec.resources.gpu to what is here; nothing was started");
  }
  for (std::size_t i = 0; i < job.data.size(); ++i) {
    const std::string path = Absolute(spec::DataPath(job.data[i]));
    if (path.starts_with("s3://")) {
      return Error(
          Code::kPrecondition,
          fmt::format("spec.data[{}] is {}; muster run reads local folders so far", i, path),
          "copy it to this machine and give its path; nothing was started");
    }
    if (::access(path.c_str(), F_OK) != 0) {
      return Error(Code::kNotFound,
                   fmt::format("spec.data[{}]: {} does not exist{}", i, path,
                               job.data[i].stage ? ", and muster run does not stage data yet" : ""),
                   "check the path, or put the data there; nothing was started");
    }
  }
  return Ok();
}

/// What a run on several hosts cannot do yet.
Status CheckNodes(const spec::Job& job, const std::string& program) {
  if (job.nodes.max == 1) return Ok();
  if (IsTrainer(program)) {
    return Error(Code::kPrecondition,
                 fmt::format("the job asks for {} nodes; the collectives of muster-train span one "
                             "host so far",
                             job.nodes.max),
                 "set spec.nodes to 1; nothing was started");
  }
  using Scope = spec::LogRule::Scope;
  for (const spec::LogRule& rule : job.log_rules) {
    const bool waits = rule.start_within || rule.every;
    if (rule.scope != Scope::kAll && !(rule.scope == Scope::kAny && waits)) continue;
    return Error(
        Code::kPrecondition,
        fmt::format("log rule '{}' has scope {}, and nobody sees the lines of all {} nodes",
                    rule.name, spec::NameOf(rule.scope), job.nodes.max),
        "use scope rank0 or each; nothing was started");
  }
  return Ok();
}

void SetPolicy(const spec::Job& job, const RunFlags& flags, agent::Policy& policy) {
  policy.process_restarts = job.restart.process_restarts;
  policy.full_restarts = job.restart.full_restarts;
  policy.total_restarts = job.restart.total;
  policy.eval_period = job.restart.eval_period;
  policy.in_place = job.restart.in_place;
  if (flags.torchrun.shutdown_s) policy.grace = std::chrono::seconds(*flags.torchrun.shutdown_s);
  if (flags.grace_s) policy.grace = Seconds(*flags.grace_s);
}

/// What a rank finds and how it is shown, where torchrun's flags change it.
/// `local` ranks on each node.
Status SetTorchrun(const spec::torchrun::Settings& torchrun, std::uint32_t local,
                   agent::RunOptions& options) {
  if (!torchrun.log_dir.empty()) options.parent = torchrun.log_dir;
  options.role = torchrun.role;
  options.run_id = torchrun.run_id;
  if (torchrun.virtual_local_rank) {
    const auto list = spec::ProcessEnv()("CUDA_VISIBLE_DEVICES");
    options.devices = MUSTER_TRY(spec::DevicesOf(list, local));
  }
  if (torchrun.shown.Everything() && torchrun.line_prefix.empty()) return Ok();
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
    const unsigned shown = torchrun.shown.Of(rank % local);
    std::string prefix = torchrun.line_prefix;
    if (!prefix.empty())
      prefix = spec::torchrun::LinePrefix(prefix, torchrun.role, rank, rank % local);
    options.display.push_back(
        {.out = (shown & 1U) != 0, .err = (shown & 2U) != 0, .prefix = prefix});
  }
  return Ok();
}

/// "a,b,localhost"
Result<std::vector<std::string>> HostsOf(const std::string& list) {
  std::vector<std::string> hosts = Split(list, ',');
  for (const std::string& host : hosts) {
    const bool plain =
        !host.empty() && host[0] != '-' && host.find_first_of(" \t'\"\\;&|$`") == std::string::npos;
    if (plain && std::ranges::count(hosts, host) == 1) continue;
    return Error(Code::kInvalid, fmt::format("--nodes is '{}'", list),
                 "give different names of hosts with commas between; nothing was made");
  }
  return hosts;
}

/// Agents that the run starts itself.
Status SetHosts(const RunFlags& flags, agent::RunOptions& options) {
  if (flags.nodes.empty()) return Ok();
  options.hosts = MUSTER_TRY(HostsOf(flags.nodes));
  options.leads_only = std::erase(options.hosts, "localhost") == 0;
  const std::string ssh = flags.ssh.empty() ? "ssh -o BatchMode=yes" : flags.ssh;
  for (std::string& word : Split(ssh, ' ')) {
    if (!word.empty()) options.ssh.push_back(std::move(word));
  }
  const std::size_t given = options.hosts.size() + (options.leads_only ? 0 : 1);
  if (given >= options.least_nodes) return Ok();
  return Error(
      Code::kInvalid,
      fmt::format("the job asks for {} nodes and --nodes names {}", options.least_nodes, given),
      "name more hosts, or ask for fewer; nothing was made");
}

/// `value` is of a flag in seconds. Written so that a NaN, which is in no range, is refused.
Status CheckSeconds(std::string_view flag, const std::optional<double>& value, double least,
                    double most) {
  if (!value || (*value >= least && *value <= most)) return Ok();
  return Error(Code::kInvalid, fmt::format("{} is {}", flag, *value),
               fmt::format("give {} to {} seconds; nothing was made", least, most));
}

Status CheckFlags(const RunFlags& flags) {
  MUSTER_TRY(CheckSeconds("--grace", flags.grace_s, 0, kMostGrace));
  MUSTER_TRY(CheckSeconds("--hang-limit", flags.hang_limit_s, 1, kMostSilence));
  MUSTER_TRY(CheckSeconds("--node-lease", flags.node_lease_s, 1, kMostSilence));
  if (flags.ranks && (*flags.ranks < 1 || *flags.ranks > agent::shim::kMaxWorkers)) {
    return Error(
        Code::kInvalid, fmt::format("--ranks is {}", *flags.ranks),
        fmt::format("give 1 to at most {} ranks; nothing was made", agent::shim::kMaxWorkers));
  }
  const spec::torchrun::Settings& torchrun = flags.torchrun;
  if (torchrun.max_restarts && *torchrun.max_restarts > kMostRestarts) {
    return Error(Code::kInvalid, fmt::format("--max-restarts is {}", *torchrun.max_restarts),
                 fmt::format("give 0 to {}; nothing was made", kMostRestarts));
  }
  return CheckSeconds("--shutdown-timeout", torchrun.shutdown_s, 0, kMostGrace);
}

}  // namespace

Result<spec::Job> JobFor(const RunFlags& flags, const std::string& program) {
  MUSTER_TRY(CheckFlags(flags));
  spec::Job job;
  switch (flags.line.form) {
    case Form::kNothing:
      return Error(
          Code::kInvalid, "nothing to run: give a job file, a script or a command",
          "muster run job.yaml, muster run --nproc-per-node 2 train.py, or muster run -n 2 "
          "-- PROGRAM");
    case Form::kJobFile:
      job = MUSTER_TRY(spec::ReadJob(PosixFiles(), flags.words[0])).job;
      break;
    case Form::kScript:
    case Form::kCommand:
      job.command = MUSTER_TRY(CommandFor(flags.words, flags.torchrun, ParentOf(program)));
      job.name = NameOfCommand(flags.line.form == Form::kScript ? flags.words : job.command);
      break;
  }
  if (flags.torchrun.nodes) job.nodes = *flags.torchrun.nodes;
  // Hosts without a number are all of them.
  const bool counted = flags.torchrun.nodes || job.nodes.min > 1;
  if (!flags.nodes.empty() && !counted) {
    const auto hosts = static_cast<std::uint32_t>(MUSTER_TRY(HostsOf(flags.nodes)).size());
    job.nodes = {hosts, hosts};
  }
  if (flags.torchrun.ranks) job.ranks_per_node = *flags.torchrun.ranks;
  if (flags.ranks) job.ranks_per_node = {spec::RanksPerNode::Kind::kCount, *flags.ranks};
  if (!flags.name.empty()) job.name = flags.name;
  // The run folder's job.yaml is the job that ran.
  if (flags.restart_all) job.restart.in_place = false;
  if (flags.hang_limit_s) job.restart.hang_limit = Seconds(*flags.hang_limit_s);
  if (flags.node_lease_s) job.restart.node_lease = Seconds(*flags.node_lease_s);
  if (flags.torchrun.max_restarts) {
    job.restart.process_restarts = *flags.torchrun.max_restarts;
    job.restart.full_restarts = 0;
  }
  if (!flags.checkpoint_dir.empty()) job.checkpoint.dir = Absolute(flags.checkpoint_dir);
  MUSTER_TRY(spec::ValidateJob(job));
  return job;
}

std::vector<std::string> NotActedOn(const spec::Job& job) {
  std::vector<std::string> keys;
  if (!(job.spares == spec::Spares{})) keys.emplace_back("spec.spares");
  if (job.resources.cpu_milli > 0) keys.emplace_back("spec.resources.cpu");
  if (job.resources.memory.count > 0) keys.emplace_back("spec.resources.memory");
  return keys;
}

Result<agent::RunOptions> OptionsFor(const spec::Job& job, const RunFlags& flags,
                                     const std::string& program) {
  MUSTER_TRY(CheckSupplies(job));
  agent::RunOptions options;
  options.ranks = MUSTER_TRY(RanksOf(job.ranks_per_node));
  if (options.ranks > agent::shim::kMaxWorkers) {
    return Error(Code::kInvalid, fmt::format("{} ranks on one node; at most {} are possible",
                                             options.ranks, agent::shim::kMaxWorkers));
  }
  const std::string beside = ParentOf(program);
  spec::Job located = job;
  MakeDataAbsolute(located);
  const spec::Variables variables = spec::DataVariables(located);
  options.command = MUSTER_TRY(spec::ExpandCommand(job.command, variables));
  options.program = MUSTER_TRY(FindCommand(options.command[0], beside));
  options.shim = MUSTER_TRY(FindShim(beside));
  MUSTER_TRY(CheckNodes(job, options.program));
  MUSTER_TRY(SetZygote(flags.preload, options));
  options.name = job.name;
  options.folder = flags.folder;
  options.job_yaml = spec::PrintJobYaml(job) + profile::FlagsLine(WordsToGoOn(flags));
  options.checkpoint_dir = job.checkpoint.dir;
  options.checkpoint_every = job.checkpoint.every;
  for (const spec::DataSource& source : located.data) options.data.push_back(source.at);
  options.time_limit = job.time_limit;
  options.log_rules = job.log_rules;
  options.quiet = flags.quiet;
  options.kernel_log =
      flags.kernel_log.empty() ? agent::health::KernelLog::kDevice : flags.kernel_log;
  SetPolicy(job, flags, options.policy);
  options.hang_limit = job.restart.hang_limit;
  options.node_lease = job.restart.node_lease;
  if (flags.report_hangs) options.on_hang = agent::OnHang::kReport;
  options.nodes = job.nodes.max;
  options.least_nodes = job.nodes.min;
  const std::uint32_t local = options.ranks;
  options.ranks *= options.nodes;
  MUSTER_TRY(SetTorchrun(flags.torchrun, local, options));
  MUSTER_TRY(SetHosts(flags, options));
  options.flags = WordsToGoOn(flags);
  if (!flags.listen.empty()) options.listen = flags.listen;
  return options;
}

}  // namespace muster::cli

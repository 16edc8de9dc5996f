#include "agent/launch/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "agent/coordinator/plan.h"
#include "agent/launch/command_writer.h"
#include "coll/muster_coll.h"
#include "net/own_address.h"
#include "spec/command.h"
#include "spec/env.h"

namespace muster::agent {
namespace {

constexpr int kHeartbeatFd = 3;
constexpr int kArenaFd = 4;
constexpr int kLinkFd = 5;  // without collectives there is nothing to unwind from
// Address space of a memfd: pages exist once they are touched.

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) return ErrnoError("pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

std::uint32_t AvailableCores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max(1U, static_cast<std::uint32_t>(CPU_COUNT(&set)));
  }
  // More than 1024 processors: the small set is refused.
  return static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

Result<Launcher> Launcher::Create(const RunOptions& options, RankRange ranks,
                                  const std::string& run_folder, const std::string& run_id) {
  Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return ErrnoError("open /dev/null", errno);
  Launcher launcher(options, ranks, run_folder, run_id, std::move(null));
  std::array<char, PATH_MAX> cwd{};
  if (::getcwd(cwd.data(), cwd.size()) == nullptr) return ErrnoError("working folder", errno);
  launcher.cwd_ = cwd.data();
  launcher.umask_ = ::umask(022);
  ::umask(launcher.umask_);
  const auto lookup = spec::ProcessEnv();
  if (!lookup("OMP_NUM_THREADS")) {
    launcher.omp_threads_ = std::max(1U, AvailableCores() / ranks.count);
  }
  launcher.unbuffered_ = !lookup("PYTHONUNBUFFERED");
  launcher.names_gloo_ = lookup("GLOO_SOCKET_IFNAME").has_value();
  launcher.names_nccl_ = lookup("NCCL_SOCKET_IFNAME").has_value();
  launcher.nccl_error_handling_ = lookup("TORCH_NCCL_ASYNC_ERROR_HANDLING").value_or("1");
  return launcher;
}

std::string RankName(Rank rank) { return fmt::format("rank.{}", rank.value()); }

std::string Launcher::ErrorFile(Rank rank, Generation generation) const {
  return fmt::format("{}/errors/rank-{}.gen-{}.json", run_folder_, rank.value(),
                     generation.value());
}

std::vector<std::string> Launcher::OwnEnvironment(Rank rank, const GenerationFacts& facts) const {
  spec::WorkerEnv env;
  env.rank = rank;
  env.world = facts.world;
  env.local_world = ranks_.count;
  env.local_rank = ranks_.IndexOf(rank);
  env.generation = facts.generation;
  env.heartbeat_fd = kHeartbeatFd;
  env.arena_fd = arena_.valid() ? kArenaFd : -1;
  env.recovery_fd = arena_.valid() ? kLinkFd : -1;
  env.run_folder = run_folder_;
  env.generation_file = run_folder_ + "/generation";
  env.checkpoint_dir = spec::CheckpointFolder(options_->checkpoint_dir, run_folder_);
  env.checkpoint_every = options_->checkpoint_every;
  env.data = options_->data;
  env.master_addr = facts.master_addr;
  env.master_port = facts.master_port;
  env.restart_count = facts.restart_count;
  env.max_restarts = MostRestarts(options_->policy);
  env.role = options_->role;
  env.nccl_error_handling = nccl_error_handling_;
  if (!options_->devices.empty()) {
    env.virtual_local_rank = true;
    env.visible_devices = options_->devices.at(ranks_.IndexOf(rank));
  }
  env.run_id = options_->run_id.empty() ? run_id_ : options_->run_id;
  env.error_file = ErrorFile(rank, facts.generation);
  env.omp_threads = omp_threads_;
  env.unbuffered = unbuffered_;
  std::vector<std::string> lines = spec::WriteWorkerEnv(env);
  for (std::string& line : InterfaceVariables(facts)) lines.push_back(std::move(line));
  return lines;
}

/// Between hosts: gloo would take the address of the host's name, which often is 127.0.1.1.
std::vector<std::string> Launcher::InterfaceVariables(const GenerationFacts& facts) const {
  if (facts.world == ranks_.count || (names_gloo_ && names_nccl_)) return {};
  const auto own = net::FindOwnAddress(facts.master_addr);
  if (!own || own->interface.empty()) return {};
  std::vector<std::string> lines;
  if (!names_gloo_) lines.push_back("GLOO_SOCKET_IFNAME=" + own->interface);
  if (!names_nccl_) lines.push_back("NCCL_SOCKET_IFNAME=" + own->interface);
  return lines;
}

std::vector<std::string> Launcher::RedactedEnvironment(Rank rank,
                                                       const GenerationFacts& facts) const {
  const std::vector<std::string> own = OwnEnvironment(rank, facts);
  std::vector<std::string> lines = spec::MergeEnviron(spec::ProcessEnviron(), own);
  for (std::string& line : lines) {
    if (std::ranges::find(own, line) == own.end())
      line = line.substr(0, line.find('=')) + "=<redacted>";
  }
  return lines;
}

Status Launcher::StartZygote(ShimClient& shim) {
  const std::string log = run_folder_ + "/logs/zygote.log";
  const Fd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  const int sink = out.valid() ? out.get() : null_.get();
  // MUSTER_RUN marks its copies in /proc/PID/environ, where they show the zygote's environment. The
  // others are read when an interpreter and its libraries are loaded, so not by a copy any more.
  std::vector<std::string> own = {"MUSTER_RUN=" + run_folder_};
  if (omp_threads_ != 0) own.push_back(fmt::format("OMP_NUM_THREADS={}", omp_threads_));
  if (unbuffered_) own.emplace_back("PYTHONUNBUFFERED=1");
  const Fd command = MUSTER_TRY(WriteCommand({
      .folder = cwd_,
      .program = options_->program,
      .arguments = options_->zygote,
      .environment = spec::MergeEnviron(spec::ProcessEnviron(), own),
  }));
  return shim.StartZygote({command.get(), null_.get(), sink, sink, -1, -1, {}}, umask_);
}

Status Launcher::StartRank(Rank rank, const GenerationStart& start, ShimClient& shim,
                           const WorkerSinks& sinks) {
  const Fd command = MUSTER_TRY(WriteCommand({
      .folder = cwd_,
      .program = options_->program,
      .arguments = options_->command,
      .environment = spec::MergeEnviron(spec::ProcessEnviron(), OwnEnvironment(rank, start.facts)),
  }));
  Pipe out = MUSTER_TRY(MakePipe());
  Pipe err = MUSTER_TRY(MakePipe());
  WorkerFds fds{command.get(),  null_.get(),    out.write.get(),       err.write.get(),
                out.read.get(), err.read.get(), {sinks.pages.fd(rank)}};
  Fd link;
  if (arena_.valid()) {
    link = MUSTER_TRY(sinks.links.Open(rank));
    fds.extra.insert(fds.extra.end(), {arena_.get(), link.get()});
  }
  const WorkerStart request{start.facts.generation.value(), rank.value(), start.via_zygote, umask_};
  std::vector<int> kept = {out.read.get(), err.read.get()};
  if (link.valid()) kept.push_back(sinks.links.fd(rank));
  sinks.kept.Keep(RankName(rank), kept);
  MUSTER_TRY(shim.StartWorker(request, fds));
  MUSTER_TRY(sinks.logs.Add({rank, start.facts.generation, Stream::kOut}, std::move(out.read)));
  return sinks.logs.Add({rank, start.facts.generation, Stream::kErr}, std::move(err.read));
}

void Launcher::AbortCollectives(const std::string& reason) {
  if (arena_.valid()) ::muster_coll_arena_abort(arena_.get(), reason.c_str());
}

Status Launcher::Start(const GenerationStart& start, ShimClient& shim, const WorkerSinks& sinks) {
  // Shared memory spans one node.
  if (ranks_.count == start.facts.world) {
    arena_.Reset(::muster_coll_arena_create(start.facts.world, kArenaBytesPerRank,
                                            start.facts.generation.value()));
    // EINVAL: more ranks than our collectives take (64). A program that brings its own runs
    // without.
    if (!arena_.valid() && errno != EINVAL) {
      return ErrnoError("create the collectives' arena", errno);
    }
    if (arena_.valid()) sinks.kept.Keep(kArenaName, {arena_.get()});
  }
  // The new ranks first: they take longest.
  for (const Rank rank : start.ranks) MUSTER_TRY(StartRank(rank, start, shim, sinks));
  for (const Rank rank : start.keepers) {
    sinks.links.Commit(rank, start.facts.generation, arena_.get());
  }
  return Ok();
}

}  // namespace muster::agent

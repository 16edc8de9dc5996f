#include "agent/run_job.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "agent/coordinator/run_loop.h"
#include "agent/keep/result_archive.h"
#include "agent/keep/supervisor.h"
#include "agent/launch/descriptor_limit.h"
#include "agent/launch/launcher.h"
#include "agent/launch/python_command.h"
#include "agent/launch/start_advice.h"
#include "agent/run/closing.h"
#include "agent/store/store_process.h"
#include "base/bytes.h"
#include "base/id.h"
#include "base/text.h"
#include "os/signals.h"

namespace muster::agent {

template <typename A>
void Fields(A& a, RunOutcome& m) {
  a("exit_code", m.exit_code), a("result", m.result_json), a("hung", m.hung_writer);
}

namespace {

/// Memory that processes share is a file to the limit of file sizes, sparse as it is.
Status CheckFileSizes(const RunOptions& options) {
  constexpr rlim_t kBesides = 32u << 20;  // what coordinators save, and the collectives' own part
  constexpr std::uint32_t kMostSharing = 64;
  const bool shares = options.nodes == 1 && options.ranks <= kMostSharing;
  const rlim_t needed = kBesides + (shares ? options.ranks * kArenaBytesPerRank : 0);
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= needed) return Ok();
  const auto bytes = [](rlim_t count) { return FormatBytes({static_cast<std::int64_t>(count)}); };
  return Error(Code::kExhausted,
               fmt::format("a run of {} needs files of {}, shared memory included; the limit of "
                           "file sizes is {}",
                           Counted(options.ranks, "rank"), bytes(needed), bytes(limit.rlim_cur)),
               "raise it (ulimit -f unlimited); nothing was made");
}

/// What a run cannot do without, before anything of it exists.
Status CheckProcess(const RunOptions& options) {
  std::error_code gone;
  const std::string here = std::filesystem::current_path(gone).string();
  if (gone) {
    return Error(Code::kPrecondition, "the working folder is gone or not readable",
                 "cd to one that exists; nothing was made");
  }
  MUSTER_TRY(CheckScript(PosixFiles(), options.command, here));
  // A page, two pipes, two logs and the steps for each rank, and some for the run.
  const rlim_t needed = 40 + rlim_t{6} * options.ranks;
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < needed) {
    return Error(Code::kExhausted,
                 fmt::format("a run of {} ranks needs {} open files; the hard limit is {}",
                             options.ranks, needed, limit.rlim_max),
                 fmt::format("raise it (ulimit -Hn {}); nothing was made", needed));
  }
  return CheckFileSizes(options);
}

Error NotStarted(const Error& error, const std::string& path) {
  std::string hint = error.hint();
  // EAGAIN of a clone is a limit, too.
  const bool limit = error.code() == Code::kExhausted || error.code() == Code::kUnavailable;
  if (hint.empty() && limit) {
    hint = fmt::format("the limits are {} and {}", DescriptorLimit(), ProcessLimit());
  }
  if (!hint.empty()) hint += "; ";
  return {error.code(), error.message(),
          fmt::format("{}no worker was started, and {} can be used again", hint, path)};
}

/// The life of one coordinator.
Result<RunOutcome> Steer(const RunOptions& options, RunFolder folder, RunHost host,
                         const std::vector<int>& signals) {
  const std::string path = folder.path();
  const bool first = host.kept->past().count == 0;
  auto own_signals = MUSTER_TRY(os::SignalFd::Block(signals));
  auto run = RunLoop::Create(options, std::move(folder), std::move(host), std::move(own_signals));
  if (!run && first) return NotStarted(run.error(), path);
  if (!run) return std::move(run.error()).Within("go on with the run").Hint("its ranks were ended");
  const RunOutcome outcome = (*run)->Run();
  // Destructors would free what a write that hangs in the kernel still uses.
  if (outcome.hung_writer) static_cast<void>(run->release());
  return outcome;
}

}  // namespace

ConsoleOptions ConsoleFor(const RunOptions& options) {
  ConsoleOptions console;
  console.out_fd = options.json ? console.err_fd : console.out_fd;
  console.quiet = options.quiet;
  console.ranks = options.display;
  return console;
}

Result<RunOutcome> RunJob(const RunOptions& options) {
  MUSTER_TRY(CheckProcess(options));
  // Before the folder: who interrupts a run finds one that says so, or none. Before the first
  // thread, too: every thread inherits the mask.
  std::vector<int> watched = os::EndingSignals();
  watched.insert(watched.end(), {SIGUSR1, SIGUSR2});
  os::SignalFd signals = MUSTER_TRY(os::SignalFd::Block(watched));
  const std::uint64_t soft_nofile = RaiseDescriptorLimit();
  const std::string id = SystemIds().Next(8);
  const std::string path = options.folder.empty() ? DefaultRunFolder(options.parent, options.name,
                                                                     id, SystemClock().Wall())
                                                  : options.folder;
  RunFolder folder = MUSTER_TRY(RunFolder::Create(PosixFiles(), path,
                                                  {.id = id,
                                                   .name = options.name,
                                                   .version = options.version,
                                                   .ranks = options.ranks,
                                                   .job_yaml = options.job_yaml},
                                                  SystemClock()));
  KeptFds kept;
  auto store = StartStoreProcess();
  if (!store) return NotStarted(store.error(), path);
  kept[kStoreName].push_back(std::move(*store));
  const Life life = [&](Kept& ours) {
    return EncodeResult(Steer(options, std::move(folder), {id, soft_nofile, &ours}, watched));
  };
  const auto result = Supervise({}, signals, std::move(kept), life);
  signals.StayBlocked();  // the run is over: no signal may cut its result short
  auto outcome = result ? DecodeResult<RunOutcome>(*result) : Result<RunOutcome>(result.error());
  if (outcome) return outcome;
  // The folder was moved out of in the children alone.
  const auto end = EndForCoordinator(options, folder, outcome.error(), SystemClock());
  if (end) return *end;
  if (!result && result.error().code() != Code::kBug) return NotStarted(result.error(), path);
  return outcome;
}

}  // namespace muster::agent

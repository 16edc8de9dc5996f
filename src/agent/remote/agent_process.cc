#include "agent/remote/agent_process.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "agent/keep/result_archive.h"
#include "agent/keep/supervisor.h"
#include "agent/launch/descriptor_limit.h"
#include "agent/node/node_runner.h"
#include "base/bytes.h"
#include "base/durable.h"
#include "os/signals.h"

namespace muster::agent {

/// What this process saves for the one that follows when it dies.
struct AgentPlace {
  JobTicket ticket;
  LinkPlace link;
  NodePlace node;
  bool starting = false;
  bool leaving = false;
  int exit_code = 0;
};

template <typename A>
void Fields(A& a, JobTicket& m) {
  a("agent", m.agent), a("run_id", m.run_id), a("folder", m.folder), a("cwd", m.cwd);
  a("job_yaml", m.job_yaml), a("flags", m.flags), a("ranks", m.ranks);
  a("ranks_per_node", m.ranks_per_node), a("lease", m.lease);
}
template <typename A>
void Fields(A& a, LinkPlace& m) {
  a("agent", m.agent), a("lease", m.lease), a("ranks", m.ranks), a("seen", m.seen);
  a("first", m.first), a("waiting", m.waiting);
}
template <typename A>
void Fields(A& a, NodePlace& m) {
  a("generation", m.generation), a("spawned", m.spawned), a("runs", m.runs);
  a("records", m.records), a("first_rank", m.first), a("stops", m.stops);
  a("use_zygote", m.use_zygote);
}
template <typename A>
void Fields(A& a, AgentPlace& m) {
  a("ticket", m.ticket), a("link", m.link), a("node", m.node), a("starting", m.starting);
  a("leaving", m.leaving), a("exit_code", m.exit_code);
}

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Bytes kFacts{1 << 16};
constexpr auto kLastPosts = seconds(5);
constexpr auto kLook = seconds(2);

/// One membership in a job.
class AgentProcess {
 public:
  AgentProcess(const AgentOptions& options, Kept& kept, std::uint64_t soft_nofile)
      : options_(options), kept_(kept), soft_nofile_(soft_nofile) {}
  /// Joins; or goes on where another process of this agent stood.
  Result<int> Run(std::optional<AgentPlace> place);

 private:
  Status SetUp();
  void TakeTicket(const JobTicket& ticket);
  Status Prepare(const JobTicket& ticket, std::optional<NodePlace> place);
  Status GoOn(AgentPlace place);
  void Save();
  void Take(const Order& order);
  void Hear(Report report);
  void ReadSignals();
  void Say(const std::string& text);
  void LoseLink(const Error& error);
  void Leave(int exit_code, const std::string& why, nanoseconds grace);
  void StopWhenDelivered();
  void WatchForTheEnd();

  const AgentOptions& options_;
  Kept& kept_;
  const std::uint64_t soft_nofile_;
  std::optional<JobTicket> ticket_;
  bool starting_ = false;  ///< a Start was taken, and not every rank of it asked for
  std::unique_ptr<os::EventLoop> loop_;
  std::optional<os::SignalFd> signals_;
  std::optional<os::WatchId> supervisor_;
  std::shared_ptr<Console> console_;
  std::unique_ptr<AgentLink> link_;
  std::optional<RunOptions> job_;
  std::unique_ptr<NodeRunner> node_;  ///< behind the loop and the job
  std::string folder_;                ///< of the run, when this host sees it
  bool leaving_ = false;
  int exit_code_ = 0;
  bool ended_ = false;  ///< the node has
  Instant stop_by_ = kNever;
  std::optional<Error> error_;
};

/// The folder of the run, if this host sees it too: then its record is one.
bool IsShared(const JobTicket& ticket) {
  const auto facts = PosixFiles().ReadAll(ticket.folder + "/lock", kFacts);
  return facts && facts->find('"' + ticket.run_id + '"') != std::string::npos;
}

/// Of a node that does not share the run's, whose folder keeps its mode.
Status MakePrivate(const std::string& folder) {
  std::error_code failed;
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failed);
  if (failed) return ErrnoError("chmod " + folder, failed.value());
  return Ok();
}

Status MakeFolders(const std::string& folder) {
  for (const char* name : {"", "/logs", "/errors", "/checkpoints"}) {
    std::error_code failed;
    std::filesystem::create_directories(folder + name, failed);
    if (failed) return ErrnoError("make " + folder + name, failed.value());
  }
  return Ok();
}

/// Before the log keeper is there nobody else writes it out.
void AgentProcess::Say(const std::string& text) {
  console_->Say("muster: " + text);
  console_->Pump();
}

Result<int> AgentProcess::Run(std::optional<AgentPlace> place) {
  MUSTER_TRY(SetUp());
  if (place) {
    MUSTER_TRY(GoOn(*std::move(place)));
  } else {
    link_->Join();
  }
  MUSTER_TRY(loop_->Run());
  if (node_ && !ended_) node_->Send(order::End{});
  kept_.Save({});
  console_->Flush(seconds(1));
  if (error_) return *error_;
  return exit_code_;
}

Status AgentProcess::SetUp() {
  std::signal(SIGPIPE, SIG_IGN);
  signals_.emplace(MUSTER_TRY(os::SignalFd::Block(os::EndingSignals())));
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  loop_ = MUSTER_TRY(os::EventLoop::Create());
  MUSTER_TRY(loop_->Watch(signals_->fd(), EPOLLIN, [this](std::uint32_t) { ReadSignals(); }));
  if (kept_.supervised()) {
    supervisor_ = MUSTER_TRY(loop_->Watch(kept_.socket(), EPOLLRDHUP, [this](std::uint32_t) {
      loop_->Remove(*supervisor_);
      Leave(128 + SIGKILL, "the process that was started as muster agent is gone",
            job_ ? std::min<nanoseconds>(job_->policy.grace, kOrphanGrace) : nanoseconds(0));
    }));
  }
  if (options_.lifeline_fd >= 0) {
    MUSTER_TRY(loop_->Watch(options_.lifeline_fd, EPOLLIN, [this](std::uint32_t) {
      char byte = 0;
      if (::read(options_.lifeline_fd, &byte, 1) > 0) return;
      Leave(1, "the coordinator is gone", {});
    }));
  }
  console_ = std::make_shared<Console>(ConsoleOptions{}, SystemClock());
  link_ = MUSTER_TRY(AgentLink::Create(
      *loop_, options_.link,
      {.on_ticket = [this](const JobTicket& ticket) { TakeTicket(ticket); },
       .on_order = [this](const Order& order) { Take(order); },
       .on_trouble =
           [this](const Error& error) {
             Say(fmt::format("the coordinator is not reached: {}; trying for {} s", error.message(),
                             options_.link.patience.count() / 1000));
           },
       .on_end = [this](const Error& error) { LoseLink(error); }}));
  return Ok();
}

/// The coordinator hears what this host lacks, and decides.
void AgentProcess::TakeTicket(const JobTicket& ticket) {
  if (const Status prepared = Prepare(ticket, std::nullopt); !prepared) {
    error_ = prepared.error();
    link_->Send(report::Failed{
        Error(prepared.error()).Within(fmt::format("node {}", options_.link.join.name))});
    stop_by_ = MonotonicClock::now() + kLastPosts;
    ended_ = true;
    return StopWhenDelivered();
  }
  Say(fmt::format("joined run {} as {}", ticket.run_id, options_.link.join.name));
}

Status AgentProcess::GoOn(AgentPlace place) {
  MUSTER_TRY(Prepare(place.ticket, place.node));
  const PastLife& past = kept_.past();
  Say(fmt::format("the process that leads this node died ({}); another one took its place",
                  past.death));
  link_->GoOn(std::move(place.link));
  if (node_->ready_zygote() != 0) Hear(report::ZygoteReady{node_->ready_zygote()});
  if (place.leaving) Leave(place.exit_code, "its agent died while it left", {});
  // Which ranks of it run nobody knows.
  if (place.starting) Leave(1, "its agent died while it started ranks", {});
  return Ok();
}

void AgentProcess::Save() {
  if (!kept_.supervised() || !node_ || ended_) return;
  AgentPlace place{*ticket_, link_->place(), node_->place(), starting_, leaving_, exit_code_};
  ArchiveWriter writer;
  writer("place", place);
  kept_.Save(writer.Take());
}

Status AgentProcess::Prepare(const JobTicket& ticket, std::optional<NodePlace> place) {
  ticket_ = ticket;
  if (::chdir(ticket.cwd.c_str()) < 0) {
    return ErrnoError("cd " + ticket.cwd, errno)
        .Hint("the job's working folder must be on every node; share it or make it");
  }
  const bool shared = IsShared(ticket);
  if (shared) {
    folder_ = ticket.folder;
    WatchForTheEnd();
  }
  const std::string folder = shared ? ticket.folder : options_.state_folder + "/" + ticket.run_id;
  MUSTER_TRY(MakeFolders(folder));
  if (!shared) MUSTER_TRY(MakePrivate(folder));
  const std::string job_file = folder + "/job.yaml";
  if (!shared) MUSTER_TRY(WriteDurably(PosixFiles(), job_file, AsBytes(ticket.job_yaml)));
  job_ = MUSTER_TRY(options_.options_for(ticket, job_file));
  job_->ranks = ticket.ranks;
  job_->json = options_.json;
  console_ = std::make_shared<Console>(ConsoleFor(*job_), SystemClock());
  node_ = MUSTER_TRY(NodeRunner::Create({.job = &*job_,
                                         .ranks = ticket.ranks_per_node,
                                         .run_id = ticket.run_id,
                                         .shim_id = ticket.run_id + "-" + ticket.agent,
                                         .folder = folder,
                                         .store_host = options_.link.coordinator.address.host,
                                         .own_folder = !shared,
                                         .files = &PosixFiles(),
                                         .console = console_,
                                         .clock = &SystemClock(),
                                         .soft_nofile = soft_nofile_,
                                         .kept = &kept_,
                                         .place = std::move(place)},
                                        *loop_, [this](Report said) { Hear(std::move(said)); }));
  return Ok();
}

void AgentProcess::Take(const Order& order) {
  if (!node_ || ended_ || leaving_) return;
  // Each of the others may be carried out twice; it is taken when it was carried out.
  if (std::holds_alternative<order::Start>(order)) {
    starting_ = true;
    Save();
  }
  node_->Send(order);
  Save();
}

void AgentProcess::Hear(Report report) {
  // Its workers are gone: the rest may go.
  if (leaving_ && std::holds_alternative<report::Stopped>(report)) {
    loop_->Post([this] { node_->Send(order::End{}); });
  }
  if (std::holds_alternative<report::Ended>(report)) {
    ended_ = true;
    stop_by_ = MonotonicClock::now() + kLastPosts;
  }
  if (std::holds_alternative<report::Begun>(report)) starting_ = false;
  link_->Send(report);
  Save();
  if (ended_) StopWhenDelivered();
}

void AgentProcess::StopWhenDelivered() {
  if (link_->delivered() || MonotonicClock::now() >= stop_by_) return loop_->Stop();
  loop_->After(milliseconds(10), [this] { StopWhenDelivered(); });
}

void AgentProcess::ReadSignals() {
  for (;;) {
    const auto signal = signals_->Read();
    if (!signal || !*signal) return;
    const int number = (*signal)->number;
    Leave(128 + number, "it was told to end by " + os::SignalName(number),
          job_ ? job_->policy.grace : nanoseconds(0));
  }
}

/// Given up: the workers must not go on. Out of reach for good: they get the time that they are
/// due.
void AgentProcess::LoseLink(const Error& error) {
  if (leaving_ || ended_) return;
  error_ = error;
  const bool given_up = error.code() != Code::kUnavailable && error.code() != Code::kDeadline;
  Leave(1, error.message(), job_ && !given_up ? job_->policy.grace : nanoseconds(0));
}

/// Before the job's end: the coordinator is told, if it can be, and the workers go. A second time
/// means at once.
void AgentProcess::Leave(int exit_code, const std::string& why, nanoseconds grace) {
  if (ended_ || !node_) return loop_->Stop();
  if (leaving_) return node_->Send(order::Stop{node_->place().generation, SIGKILL, {}});
  leaving_ = true;
  exit_code_ = exit_code;
  Say("leaving, and its workers with it: " + why);
  link_->Send(report::Gone{why});
  Save();
  node_->Send(order::Stop{node_->place().generation, SIGTERM, grace});
}

/// The run may end while the coordinator cannot be reached: its folder knows.
void AgentProcess::WatchForTheEnd() {
  loop_->After(kLook, [this] {
    if (ended_ || leaving_) return;
    if (::access((folder_ + "/result.json").c_str(), F_OK) != 0) return WatchForTheEnd();
    loop_->After(kLastPosts, [this] {
      if (!ended_ && !leaving_) Leave(0, "the run has ended", {});
    });
  });
}

}  // namespace

/// Who was given up, for a network that broke or a host that stood still, comes back as a spare.
Result<int> RunAgent(const AgentOptions& options) {
  os::SignalFd signals = MUSTER_TRY(os::SignalFd::Block(os::EndingSignals()));
  const std::uint64_t soft_nofile = RaiseDescriptorLimit();
  const auto live = [&](Kept& kept) -> Result<int> {
    std::optional<AgentPlace> place;
    if (const auto& state = kept.past().state) {
      ArchiveReader reader(*state);
      reader("place", place.emplace());
      if (!reader.whole()) place.reset();
    }
    for (;;) {
      Result<int> ended =
          AgentProcess(options, kept, soft_nofile).Run(std::exchange(place, std::nullopt));
      if (ended || ended.error().code() != Code::kConflict) return ended;
    }
  };
  const auto result =
      Supervise({}, signals, {}, [&](Kept& kept) { return EncodeResult(live(kept)); });
  signals.StayBlocked();
  if (!result) return result.error();
  return DecodeResult<int>(*result);
}

}  // namespace muster::agent

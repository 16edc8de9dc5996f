#include "agent/coordinator/run_loop.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "base/absent.h"
#include "base/text.h"
#include "spec/command.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kHousekeeping = seconds(1);
constexpr int kTimeLimitCode = 7;
constexpr auto kFirstLook = milliseconds(500);
constexpr auto kQuickLook = milliseconds(100);

/// Where the job saves, absolute.
std::string SavesTo(const RunOptions& options, const std::string& run_folder) {
  const std::string flag = spec::FolderInCommand(options.command);
  return flag.empty() ? spec::CheckpointFolder(options.checkpoint_dir, run_folder)
                      : AbsolutePath(flag);
}

}  // namespace

RunLoop::RunLoop(const RunOptions& options, RunFolder folder, RunHost host, os::SignalFd signals,
                 RunGround ground)
    : options_(options),
      ground_(std::move(ground)),
      clock_(*ground_.clock),
      folder_(std::move(folder)),
      host_(std::move(host)),
      kept_fds_(host_.kept != nullptr ? *host_.kept : nothing_kept_),
      run_id_(host_.run_id),
      console_(ground_.console ? ground_.console
                               : std::make_shared<Console>(ConsoleFor(options), clock_)),
      events_(folder_.files(), folder_.At("events.jsonl"), clock_),
      accounting_(options.ranks),
      hang_watch_(options.ranks),
      quiet_watch_(options.ranks, options.hang_limit),
      pids_(options.ranks),
      kills_(options.ranks),
      sights_(options.ranks),
      signals_(std::move(signals)),
      records_(options.ranks),
      begin_(folder_.created()) {
  state_.ranks.resize(options.ranks);
  state_.use_zygote = !options.zygote.empty();
}

Result<std::unique_ptr<RunLoop>> RunLoop::Create(const RunOptions& options, RunFolder folder,
                                                 RunHost host, os::SignalFd signals,
                                                 RunGround ground) {
  std::unique_ptr<RunLoop> run(new RunLoop(options, std::move(folder), std::move(host),
                                           std::move(signals), std::move(ground)));
  MUSTER_TRY(run->SetUp());
  return run;
}

Status RunLoop::SetUp() {
  std::signal(SIGPIPE, SIG_IGN);
  // When the shim is killed, what its workers left behind comes to us.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  loop_ = ground_.loop ? ground_.loop : MUSTER_TRY(os::EventLoop::Create());
  MUSTER_TRY(loop_->Watch(signals_.fd(), EPOLLIN, [this](std::uint32_t) { ReadSignals(); }));
  MUSTER_TRY(WatchSupervisor());
  std::vector<Fd> store = kept_fds_.Take(kStoreName);
  store_.emplace(*loop_, store.empty() ? Fd() : std::move(store[0]));
  steps_.emplace(folder_.files(), folder_.At("steps"), options_.ranks);
  resumed_ = Restore();
  const auto on_written = [this](Generation generation, Status written) {
    loop_->Post([this, generation, written = std::move(written)] {
      GenerationWritten(generation, written);
    });
  };
  generations_ =
      ground_.make_writer
          ? ground_.make_writer(on_written)
          : MUSTER_TRY(GenerationWriter::Start(folder_.files(), folder_.path(), on_written));
  stack_calls_.emplace(*loop_, [this](std::uint64_t id) { node_->Send(order::TakeStacks{id}); });
  committed_.emplace(folder_.files(), SavesTo(options_, folder_.path()), kFirstLook);
  if (options_.nodes > 1 || options_.leads_only) {
    MUSTER_TRY(SetUpGang());
  } else {
    node_ =
        MUSTER_TRY(MakeOwnNode({0, options_.ranks}, [this](const Report& said) { Hear(said); }));
    node_->Send(order::Seat{0});
  }
  if (!ground_.loop) ListenForVerbs();
  if (!ground_.loop) OpenKernelLog();
  return resumed_ ? Ok() : folder_.Begin();
}

/// Whoever killed the process that the user started meant the run.
Status RunLoop::WatchSupervisor() {
  if (!kept_fds_.supervised()) return Ok();
  auto watch = loop_->Watch(kept_fds_.socket(), EPOLLRDHUP, [this](std::uint32_t) {
    loop_->Remove(*supervisor_);
    Feed({.kind = Event::Kind::kGiveUp,
          .ending = {.code = 128 + SIGKILL},
          .text = "the process that was started as muster run is gone"});
    // As long as workers have whose shim is left alone.
    if (state_.phase == Phase::kEnding)
      node_->Send(order::Stop{state_.generation, SIGTERM, kOrphanGrace});
  });
  supervisor_ = MUSTER_TRY(std::move(watch));
  return Ok();
}

Result<std::unique_ptr<Node>> RunLoop::MakeOwnNode(RankRange ranks, OnReport on_report) {
  const auto place = resumed_ ? std::optional(PlaceOfNode(ranks)) : std::nullopt;
  if (ground_.make_node) return ground_.make_node(std::move(on_report), place);
  auto node = MUSTER_TRY(NodeRunner::Create(
      {.job = &options_,
       .ranks = ranks.count,
       .run_id = run_id_,
       .shim_id = run_id_,
       .folder = folder_.path(),
       .store_host = store_host_,
       .files = &folder_.files(),
       .console = console_,
       .clock = &clock_,
       .soft_nofile = host_.soft_nofile,
       .kept = &kept_fds_,
       .strangers = [this] { return join_ ? join_->SshPids() : std::vector<int>(); },
       .strangers_mark = SshMark(run_id_),
       .place = place},
      *loop_, std::move(on_report)));
  omp_threads_ = node->omp_threads();
  return node;
}

void RunLoop::Begin() {
  if (!resumed_) TellStart();
  loop_->After(kHousekeeping, [this] { Housekeep(); });
  if (options_.time_limit) {
    loop_->At(begin_ + *options_.time_limit, [this] {
      Feed({.kind = Event::Kind::kGiveUp,
            .ending = {.code = kTimeLimitCode},
            .text = "the job's time limit was reached"});
    });
  }
  loop_->Post([this] { resumed_ ? GoOn() : Feed({.kind = Event::Kind::kStart}); });
}

RunOutcome RunLoop::Run() {
  Begin();
  if (const Status ran = loop_->Run(); !ran && !state_.verdict) {
    state_.verdict = Verdict{false, 1, ran.error().ToString()};
  }
  return End();
}

void RunLoop::TellStart() {
  console_->Say(
      fmt::format("muster: {}, run folder {}", Counted(options_.ranks, "rank"), folder_.path()));
  if (const auto command = join_ ? join_->JoinCommand() : std::nullopt) {
    console_->Say("muster: on each other node: " + *command);
  }
  if (options_.ranks > 1 && omp_threads_ > 1) {
    console_->Say(
        fmt::format("muster: OMP_NUM_THREADS is {} for each rank, cores / ranks; "
                    "torchrun sets 1",
                    omp_threads_));
  }
  if (state_.use_zygote && !options_.preload.empty()) {
    console_->Say(
        fmt::format("muster: importing {} once; ranks are forked from there", options_.preload));
  }
  std::string command;
  for (const std::string& word : options_.command) command += (command.empty() ? "" : " ") + word;
  events_.Add("run_started",
              {{"ranks", options_.ranks}, {"command", command}, {"pid", ::getpid()}});
}

void RunLoop::Feed(Event event) {
  pending_.push_back(std::move(event));
  if (std::exchange(feeding_, true)) return;
  while (!pending_.empty()) {
    const Event next = std::move(pending_.front());
    pending_.pop_front();
    Take(next);
  }
  feeding_ = false;
  ArmTick();
}

/// When this fault may be the last one that is allowed without a newer checkpoint: there may be one
/// that its writer did not live to tell.
void RunLoop::LookBeforeGivingUp(const Event& event) {
  const bool decides = event.kind == Event::Kind::kExited || event.kind == Event::Kind::kTick ||
                       event.kind == Event::Kind::kNodeLost;
  const bool works = state_.phase == Phase::kRunning || state_.phase == Phase::kGathering;
  const bool last = state_.without_progress + 1 >= options_.policy.no_progress_limit;
  if (!decides || !works || !last || !reports_steps_) return;
  NoteCommitted(kQuickLook);
  RankStatus& rank = state_.ranks.front();
  rank.durable = std::max(rank.durable, durable_);
}

void RunLoop::Take(const Event& event) {
  LookBeforeGivingUp(event);
  const Phase before = state_.phase;
  const std::vector<Event> exits = ExitsOf(event);
  // Moved, for it holds every rank: a start of thousands is as many events.
  Plan plan = Advance(std::move(state_), event, clock_.Now(), options_.policy);
  state_ = std::move(plan.next);
  // Before anything is done: who finds us dead does it, or does it again.
  plan.actions.empty() ? SaveSoon() : Save();
  for (const Event& exit : exits) NoteExit(exit, before);
  NotePhase(before, plan);
  TellRules(before);
  for (const Action& action : plan.actions) Apply(action);
}

/// The deaths that it tells of, one by one, for the record.
std::vector<Event> RunLoop::ExitsOf(const Event& event) const {
  if (event.kind == Event::Kind::kExited) return {event};
  std::vector<Event> exits;
  if (event.kind != Event::Kind::kNodeLost) return exits;
  const std::size_t end =
      std::min<std::size_t>(event.rank.value() + event.ranks, state_.ranks.size());
  for (std::uint32_t i = event.rank.value(); i < end; ++i) {
    const RankStatus& rank = state_.ranks[i];
    if (rank.state != RankState::kRunning) continue;
    exits.push_back({.kind = Event::Kind::kExited,
                     .rank = Rank(i),
                     .generation = rank.spawned,
                     .ending = event.ending,
                     .pid = pids_[i]});
  }
  return exits;
}

void RunLoop::Apply(const Action& action) {
  switch (action.kind) {
    case Action::Kind::kAbort:
      node_->Send(order::Abort{Headline(*state_.fault)});
      break;
    case Action::Kind::kKill:
      node_->Send(order::Kill{action.rank});
      break;
    case Action::Kind::kStartRanks:
      StartRanks(action);
      break;
    case Action::Kind::kStop:
      StopRanks(action);
      break;
    case Action::Kind::kEnd:
      EndNode();
      break;
  }
}

/// The number is on disk before a worker of it exists: an older writer's commit is refused from
/// there on.
void RunLoop::StartRanks(const Action& action) {
  WriteGenerationOnce(action.generation);
  start_ = action;
  if (action.restart == RestartKind::kFull) node_->Send(order::Renew{});
  StartWhenWritten();
}

void RunLoop::FailStart(const Error& error) {
  start_.reset();
  Feed({.kind = Event::Kind::kGiveUp, .ending = {.code = 1}, .text = WhyNotStarted(error)});
}

void RunLoop::WriteGenerationOnce(Generation generation) {
  if (asked_ == generation) return;
  asked_ = generation;
  written_.reset();
  generations_->Write(generation);
}

void RunLoop::GenerationWritten(Generation generation, const Status& written) {
  if (generation == asked_) written_ = written;
  StartWhenWritten();
}

void RunLoop::StartWhenWritten() {
  if (!start_ || !written_ || start_->generation != asked_) return;
  // A rank died before this one began: another one follows, or a stop.
  if (state_.phase != Phase::kStarting) return;
  const Action action = *std::exchange(start_, {});
  if (!*written_) return FailStart(written_->error());
  const auto port = store_->Open(action.generation, store_host_);
  if (!port) return FailStart(port.error());
  store_port_ = *port;
  accounting_.Began(events_.Add("generation_started", {{"gen", action.generation.value()}}));
  node_->Send(StartOf(action));
}

order::Start RunLoop::StartOf(const Action& action) const {
  order::Start start{.generation = action.generation,
                     .via_zygote = state_.use_zygote,
                     .restart_count = state_.restarts,
                     .world = static_cast<std::uint32_t>(state_.ranks.size()),
                     .master_port = store_port_};
  for (std::uint32_t i = 0; i < state_.ranks.size(); ++i) {
    const bool is_new = state_.ranks[i].state == RankState::kStarting;
    (is_new ? start.ranks : start.keepers).push_back(Rank(i));
  }
  return start;
}

void RunLoop::StopRanks(const Action& action) {
  start_.reset();
  CloseStore();
  node_->Send(order::Stop{state_.generation, action.signal, action.grace});
  // An fsync takes as long as the stop does; nothing needs them one after the other.
  if (state_.next) WriteGenerationOnce(Generation(state_.generation.value() + 1));
}

/// Whoever still dials it meets nobody, then or later.
void RunLoop::CloseStore() {
  store_->Close();
  store_port_ = 0;
}

/// Answered by Ended, which ends the loop. What takes stacks ends with the shim, so it is waited
/// for, where there is one.
void RunLoop::EndNode() {
  if (stack_calls_->pending() && !state_.without_shim) {
    ends_behind_stacks_ = true;
    return;
  }
  CloseStore();
  node_->Send(order::End{});
}

void RunLoop::ArmTick() {
  if (tick_) loop_->Remove(*tick_);
  tick_.reset();
  const Phase phase = state_.phase;
  if (phase == Phase::kIdle || phase == Phase::kRunning || phase == Phase::kEnded) return;
  tick_ = loop_->At(state_.deadline, [this, phase] {
    tick_.reset();
    if (phase == Phase::kStopping || phase == Phase::kEnding) return node_->Send(order::GiveUp{});
    node_->Poll();  // What was published by now decides what comes next.
    Feed({.kind = Event::Kind::kTick});
  });
}

void RunLoop::ReadSignals() {
  for (;;) {
    const auto signal = signals_.Read();
    if (!signal || !*signal) return;
    const int number = (*signal)->number;
    events_.Add("signal", {{"name", os::SignalName(number)}});
    if (number == SIGUSR1 || number == SIGUSR2) {
      node_->Send(order::Signal{number});
      continue;
    }
    Feed({.kind = Event::Kind::kInterrupt, .signal = number});
    if (number == SIGINT && state_.interrupts == 1 && state_.phase == Phase::kEnding) {
      console_->Say("muster: stopping the workers; once more kills them");
    }
  }
}

}  // namespace muster::agent

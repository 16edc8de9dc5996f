#include "agent/coordinator/run_loop.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <utility>

#include "agent/launch/start_advice.h"
#include "base/absent.h"
#include "base/text.h"
#include "spec/command.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kHousekeeping = seconds(1);
constexpr auto kOrphanGrace = seconds(10);
// A daemon that holds the pipe costs a crash this much; a kill from outside costs nothing.
constexpr auto kLastWords = milliseconds(200);
constexpr int kTimeLimitCode = 7;
constexpr auto kFirstLook = milliseconds(500);

/// Where the job saves, absolute.
std::string SavesTo(const RunOptions& options, const std::string& run_folder) {
  const std::string flag = spec::FolderInCommand(options.command);
  return flag.empty() ? spec::CheckpointFolder(options.checkpoint_dir, run_folder)
                      : AbsolutePath(flag);
}

/// A rank costs us some six descriptors: its page, two pipes, two logs, its steps. The value is the
/// limit that workers are to find; 0: ours was not changed.
std::uint64_t RaiseDescriptorLimit() {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return 0;
  const struct rlimit raised{limit.rlim_max, limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) < 0 ? 0 : limit.rlim_cur;
}

ConsoleOptions ConsoleFor(const RunOptions& options) {
  ConsoleOptions console;
  console.out_fd = options.json ? console.err_fd : console.out_fd;
  console.quiet = options.quiet;
  console.ranks = options.display;
  return console;
}

}  // namespace

RunLoop::RunLoop(const RunOptions& options, RunFolder folder, const std::string& run_id,
                 os::SignalFd signals)
    : options_(options),
      clock_(SystemClock()),
      folder_(std::move(folder)),
      run_id_(run_id),
      console_(std::make_shared<Console>(ConsoleFor(options), clock_)),
      events_(folder_.files(), folder_.At("events.jsonl"), clock_),
      accounting_(options.ranks),
      hang_watch_(options.ranks),
      pids_(options.ranks),
      kills_(options.ranks),
      signals_(std::move(signals)),
      begin_(folder_.created()) {
  state_.ranks.resize(options.ranks);
  state_.use_zygote = !options.zygote.empty();
}

Result<std::unique_ptr<RunLoop>> RunLoop::Create(const RunOptions& options, RunFolder folder,
                                                 const std::string& run_id, os::SignalFd signals) {
  std::unique_ptr<RunLoop> run(new RunLoop(options, std::move(folder), run_id, std::move(signals)));
  MUSTER_TRY(run->SetUp());
  return run;
}

Status RunLoop::SetUp() {
  std::signal(SIGPIPE, SIG_IGN);
  soft_nofile_ = RaiseDescriptorLimit();
  // When the shim is killed, what its workers left behind comes to us.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  loop_ = MUSTER_TRY(os::EventLoop::Create());
  MUSTER_TRY(loop_->Watch(signals_.fd(), EPOLLIN, [this](std::uint32_t) { ReadSignals(); }));
  board_.emplace(
      MUSTER_TRY(RankBoard::Create(folder_.files(), folder_.At("steps"), options_.ranks)));
  links_.emplace(*loop_, options_.ranks, [this](Rank rank, const os::RecoveryHost::Message& said) {
    HearRank(rank, said);
  });
  generations_ = MUSTER_TRY(GenerationWriter::Start(
      folder_.files(), folder_.path(), [this](Generation generation, Status written) {
        loop_->Post([this, generation, written = std::move(written)] {
          GenerationWritten(generation, written);
        });
      }));
  committed_.emplace(folder_.files(), SavesTo(options_, folder_.path()), kFirstLook);
  launcher_.emplace(MUSTER_TRY(Launcher::Create(options_, *loop_, folder_.path(), run_id_)));
  MUSTER_TRY(StartRules());
  logs_ = MUSTER_TRY(LogKeeper::Start({.files = &folder_.files(),
                                       .folder = folder_.At("logs"),
                                       .console = console_,
                                       .clock = &clock_,
                                       .tap = RuleTap()}));
  MUSTER_TRY(StartShim());
  return folder_.Begin();
}

Status RunLoop::StartShim() {
  const auto grace = std::min<nanoseconds>(options_.policy.grace, kOrphanGrace);
  shim_.emplace(
      MUSTER_TRY(ShimClient::Start({.program = options_.shim,
                                    .id = run_id_,
                                    .orphan_grace = std::chrono::duration_cast<milliseconds>(grace),
                                    .soft_nofile = soft_nofile_})));
  Handle(MUSTER_TRY(shim_->AwaitHello()));
  shim_watch_ =
      MUSTER_TRY(loop_->Watch(shim_->fd(), EPOLLIN, [this](std::uint32_t) { ReadShim(); }));
  zygote_alive_ = false;
  EnsureZygote();
  return Ok();
}

RunOutcome RunLoop::Run() {
  console_->Say(
      fmt::format("muster: {}, run folder {}", Counted(options_.ranks, "rank"), folder_.path()));
  if (options_.ranks > 1 && launcher_->omp_threads() > 1) {
    console_->Say(
        fmt::format("muster: OMP_NUM_THREADS is {} for each rank, cores / ranks; "
                    "torchrun sets 1",
                    launcher_->omp_threads()));
  }
  if (state_.use_zygote && !options_.preload.empty()) {
    console_->Say(
        fmt::format("muster: importing {} once; ranks are forked from there", options_.preload));
  }
  std::string command;
  for (const std::string& word : options_.command) command += (command.empty() ? "" : " ") + word;
  events_.Add("run_started", {{"ranks", options_.ranks}, {"command", command}});
  loop_->After(kHousekeeping, [this] { Housekeep(); });
  if (options_.time_limit) {
    loop_->After(*options_.time_limit, [this] {
      Feed({.kind = Event::Kind::kGiveUp,
            .ending = {.code = kTimeLimitCode},
            .text = "the job's time limit was reached"});
    });
  }
  loop_->Post([this] { Feed({.kind = Event::Kind::kStart}); });
  if (const Status ran = loop_->Run(); !ran && !state_.verdict) {
    state_.verdict = Verdict{false, 1, ran.error().ToString()};
  }
  return End();
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

void RunLoop::Take(const Event& event) {
  const Phase before = state_.phase;
  Plan plan = Advance(state_, event, clock_.Now(), options_.policy);
  state_ = plan.next;
  if (event.kind == Event::Kind::kExited) NoteExit(event);
  NotePhase(before, plan);
  TellRules(before, event);
  for (const Action& action : plan.actions) Apply(action);
}

void RunLoop::Apply(const Action& action) {
  switch (action.kind) {
    case Action::Kind::kAbort:
      launcher_->AbortCollectives(Headline(*state_.fault));
      break;
    case Action::Kind::kStartRanks:
      StartRanks(action);
      break;
    case Action::Kind::kStop:
      StopRanks(action);
      break;
    case Action::Kind::kEnd:
      loop_->Stop();
      break;
  }
}

/// The number is on disk before a worker of it exists: an older writer's commit is refused from
/// there on.
void RunLoop::StartRanks(const Action& action) {
  WriteGenerationOnce(action.generation);
  start_ = action;
  if (action.restart == RestartKind::kFull) {
    if (const Status renewed = RenewShim(); !renewed) return FailStart(renewed.error());
  }
  EnsureZygote();
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
  if (written_->has_value() && AwaitsZygote()) return;
  const Action action = *std::exchange(start_, {});
  const auto started = [&]() -> Status {
    if (!*written_) return written_->error();
    generation_begin_ = events_.Add("generation_started", {{"gen", action.generation.value()}});
    accounting_.Began(generation_begin_);
    words_until_.reset();
    BeginRules();
    return launcher_->Start(StartOf(action), *shim_, {*logs_, *board_, *links_});
  }();
  if (!started) return FailStart(started.error());
  DrainLater();
}

GenerationStart RunLoop::StartOf(const Action& action) const {
  GenerationStart start{action.generation, state_.use_zygote, state_.restarts, {}};
  for (std::uint32_t i = 0; i < state_.ranks.size(); ++i) {
    const bool is_new = state_.ranks[i].state == RankState::kStarting;
    (is_new ? start.ranks : start.keepers).push_back(Rank(i));
  }
  return start;
}

void RunLoop::HearRank(Rank rank, const os::RecoveryHost::Message& message) {
  const auto kind = message.quiesced ? Event::Kind::kQuiesced : Event::Kind::kCarries;
  Feed({.kind = kind, .rank = rank, .generation = state_.ranks[rank.value()].spawned});
}

void RunLoop::StopRanks(const Action& action) {
  start_.reset();
  links_->CloseAll();
  launcher_->CloseStore();
  if (!shim_) {
    // A full restart found no new one, and the old one took everything along.
    Feed({.kind = Event::Kind::kStopped});
    return;
  }
  if (!shim_watch_) return LoseShim("muster-shim cannot be watched");
  if (!shim_->Stop(action.signal, action.grace)) {
    return LoseShim("muster-shim died, and every worker with it");
  }
  // An fsync takes as long as the stop does; nothing needs them one after the other.
  if (state_.next) WriteGenerationOnce(Generation(state_.generation.value() + 1));
}

/// Its socket is closed, or it does not answer: what it leaves behind is swept at the end.
void RunLoop::LoseShim(const std::string& reason) {
  if (shim_watch_) loop_->Remove(*shim_watch_);
  shim_watch_.reset();
  shim_lost_ = true;
  if (state_.verdict) console_->Say("muster: " + reason);  // the verdict is another one
  Feed({.kind = Event::Kind::kShimLost, .text = reason});
}

Status RunLoop::RenewShim() {
  LeaveShim();
  return StartShim();
}

void RunLoop::ArmTick() {
  if (tick_) loop_->Remove(*tick_);
  tick_.reset();
  const Phase phase = state_.phase;
  if (phase == Phase::kIdle || phase == Phase::kRunning || phase == Phase::kEnded) return;
  tick_ = loop_->At(state_.deadline, [this, phase] {
    tick_.reset();
    if (phase == Phase::kStopping || phase == Phase::kEnding) {
      return LoseShim("muster-shim does not answer; it was killed, and every worker with it");
    }
    if (phase == Phase::kStarting && AwaitsZygote()) return GiveZygoteTime();
    Drain();  // What was published by now decides what comes next.
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
      // A worker without a handler would die of it.
      if (shim_) [[maybe_unused]]
        const Status sent = shim_->Signal(number, true);
      continue;
    }
    Feed({.kind = Event::Kind::kInterrupt, .signal = number});
    if (number == SIGINT && state_.interrupts == 1 && state_.phase == Phase::kEnding) {
      console_->Say("muster: stopping the workers; once more kills them");
    }
  }
}

void RunLoop::ReadShim() {
  for (;;) {
    const auto message = shim_->Receive();
    if (!message && message.error().code() == Code::kInvalid) continue;
    if (!message) return LoseShim("muster-shim died, and every worker with it");
    if (!*message) return;
    Handle(**message);
    // What it said may have led to a new shim, or to none.
    if (!shim_ || !shim_watch_) return;
  }
}

void RunLoop::Handle(const ShimMessage& message) {
  if (const auto* hello = std::get_if<shim::Hello>(&message)) {
    cgroup_ = hello->has_cgroup != 0 ? hello->cgroup : "";
  } else if (const auto* zygote = std::get_if<shim::Zygote>(&message)) {
    HandleZygote(*zygote);
  } else if (const auto* started = std::get_if<shim::Started>(&message)) {
    HandleStarted(*started);
  } else if (const auto* exited = std::get_if<shim::Exited>(&message)) {
    HandleExited(*exited);
  } else if (const auto* stopped = std::get_if<shim::Stopped>(&message)) {
    if (stopped->left != 0) {
      console_->Say(fmt::format("muster: {} processes do not die of SIGKILL; going on without them",
                                stopped->left));
    }
    Feed({.kind = Event::Kind::kStopped});
  }
}

void RunLoop::HandleStarted(const shim::Started& started) {
  Event event{.kind = Event::Kind::kStarted,
              .rank = Rank(started.rank),
              .generation = Generation(started.generation)};
  if (started.error != 0) {
    event.kind = Event::Kind::kExited;
    event.ending = {.start_error = started.error,
                    .time = clock_.Now(),
                    .advice = StartAdvice(options_.program, started.error)};
  } else {
    state_.zygote_served = state_.zygote_served || started.forked != 0;
    pids_[started.rank] = started.pid;
    kills_[started.rank] = {};
    worker_started_ =
        events_.Add("worker_started", {{"gen", started.generation},
                                       {"rank", started.rank},
                                       {"pid", started.pid},
                                       {"how", started.forked != 0 ? "fork" : "exec"}});
  }
  Feed(event);
}

/// All that crash in a generation share one wait, and who dies of being stopped has none.
std::string RunLoop::LastWordsOf(Rank rank, Generation generation) {
  const Instant now = clock_.Now();
  if (!words_until_) words_until_ = now + kLastWords;
  const bool stopping = state_.phase == Phase::kStopping || state_.phase == Phase::kEnding;
  const auto limit = stopping ? nanoseconds(0) : std::max(nanoseconds(0), *words_until_ - now);
  return logs_->LastWords({rank, generation, Stream::kErr}, limit);
}

void RunLoop::HandleExited(const shim::Exited& exited) {
  const Rank rank(exited.rank);
  const Generation generation(exited.generation);
  const bool stopping = state_.phase == Phase::kStopping || state_.phase == Phase::kEnding;
  const bool current = generation == state_.ranks[rank.value()].spawned;
  if (current) {
    // A fault is judged by what every rank had published by then.
    if (stopping) {
      ObserveRank(rank);
    } else {
      Drain();
    }
  }
  Event event{.kind = Event::Kind::kExited, .rank = rank, .generation = generation};
  event.ending = {.code = exited.code,
                  .signal = exited.signal,
                  .start_error = exited.exec_error,
                  .never_found = IsCommandAtFault(exited.exec_error),
                  .time = Instant(nanoseconds(exited.time_ns)),
                  .advice = StartAdvice(options_.program, exited.exec_error)};
  if (current) {
    Ending kill = std::exchange(kills_[rank.value()], {});
    event.ending.hang = std::move(kill.hang);
    event.ending.rule = std::move(kill.rule);
  }
  if (current && IsOwnCrash(event.ending)) {
    event.text = ExceptionLine(LastWordsOf(rank, generation));
  }
  event.pid = exited.pid;
  logs_->Finish(rank, generation, clock_.Now() + seconds(1));
  Feed(event);
}

}  // namespace muster::agent

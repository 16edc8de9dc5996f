#include "agent/coordinator/run_loop.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <csignal>
#include <utility>

#include "os/wait_fd.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kHousekeeping = seconds(1);
constexpr auto kOrphanGrace = seconds(10);
constexpr auto kShimExit = seconds(15);
// A daemon that holds the pipe costs a crash this much; a kill from outside costs nothing.
constexpr auto kLastWords = milliseconds(200);
constexpr int kMaxZygoteDeaths = 3;
constexpr int kTimeLimitCode = 7;

/// What ends or asks something of a run. HUP stays ignored for who was started by nohup.
std::vector<int> WatchedSignals() {
  std::vector<int> watched = {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2};
  struct sigaction hup{};
  if (::sigaction(SIGHUP, nullptr, &hup) == 0 && hup.sa_handler != SIG_IGN) {
    watched.push_back(SIGHUP);
  }
  return watched;
}

ConsoleOptions ConsoleFor(const RunOptions& options) {
  ConsoleOptions console;
  console.out_fd = options.json ? console.err_fd : console.out_fd;
  console.quiet = options.quiet;
  return console;
}

}  // namespace

RunLoop::RunLoop(const RunOptions& options, RunFolder folder, const std::string& run_id)
    : options_(options),
      clock_(SystemClock()),
      folder_(std::move(folder)),
      run_id_(run_id),
      console_(std::make_shared<Console>(ConsoleFor(options), clock_)),
      events_(folder_.files(), folder_.At("events.jsonl"), clock_),
      accounting_(options.ranks),
      begin_(clock_.Now()) {
  state_.ranks.resize(options.ranks);
  state_.use_zygote = options.zygote;
}

Result<std::unique_ptr<RunLoop>> RunLoop::Create(const RunOptions& options, RunFolder folder,
                                                 const std::string& run_id) {
  std::unique_ptr<RunLoop> run(new RunLoop(options, std::move(folder), run_id));
  MUSTER_TRY(run->SetUp());
  return run;
}

Status RunLoop::SetUp() {
  // Before the first thread: every thread inherits the mask.
  signals_.emplace(MUSTER_TRY(os::SignalFd::Block(WatchedSignals())));
  std::signal(SIGPIPE, SIG_IGN);
  // When the shim is killed, what its workers left behind comes to us.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  loop_ = MUSTER_TRY(os::EventLoop::Create());
  MUSTER_TRY(loop_->Watch(signals_->fd(), EPOLLIN, [this](std::uint32_t) { ReadSignals(); }));
  board_.emplace(
      MUSTER_TRY(RankBoard::Create(folder_.files(), folder_.At("steps"), options_.ranks)));
  launcher_.emplace(MUSTER_TRY(Launcher::Create(options_, folder_.path(), run_id_)));
  logs_ = MUSTER_TRY(LogKeeper::Start({.files = &folder_.files(),
                                       .folder = folder_.At("logs"),
                                       .console = console_,
                                       .clock = &clock_}));
  return StartShim();
}

Status RunLoop::StartShim() {
  const auto grace = std::min<nanoseconds>(options_.policy.grace, kOrphanGrace);
  shim_.emplace(MUSTER_TRY(
      ShimClient::Start(options_.shim, run_id_, std::chrono::duration_cast<milliseconds>(grace))));
  shim_watch_ =
      MUSTER_TRY(loop_->Watch(shim_->fd(), EPOLLIN, [this](std::uint32_t) { ReadShim(); }));
  if (state_.use_zygote) MUSTER_TRY(launcher_->StartZygote(*shim_));
  return Ok();
}

RunOutcome RunLoop::Run() {
  console_->Say(fmt::format("muster: {} {}, run folder {}", options_.ranks,
                            options_.ranks == 1 ? "rank" : "ranks", folder_.path()));
  if (options_.ranks > 1 && launcher_->omp_threads() > 1) {
    console_->Say(
        fmt::format("muster: OMP_NUM_THREADS is {} for each rank, cores / ranks; "
                    "torchrun sets 1",
                    launcher_->omp_threads()));
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
  for (const Action& action : plan.actions) Apply(action);
}

void RunLoop::Apply(const Action& action) {
  switch (action.kind) {
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

void RunLoop::StartRanks(const Action& action) {
  const auto started = [&]() -> Status {
    MUSTER_TRY(CommitGeneration(action.generation));
    if (action.restart == RestartKind::kFull) MUSTER_TRY(RenewShim());
    events_.Add("generation_started", {{"gen", action.generation.value()}});
    generation_begin_ = clock_.Now();
    return launcher_->Start({action.generation, state_.use_zygote, state_.restarts}, *shim_, *logs_,
                            *board_);
  }();
  if (!started) {
    Feed({.kind = Event::Kind::kGiveUp, .ending = {.code = 1}, .text = started.error().ToString()});
    return;
  }
  DrainLater();
}

/// On disk before a worker of it exists: an older writer's commit is refused from here on.
Status RunLoop::CommitGeneration(Generation generation) {
  if (next_generation_.valid()) return next_generation_.get();
  return folder_.WriteGeneration(generation);
}

void RunLoop::StopRanks(const Action& action) {
  if (shim_lost_ || !shim_->Stop(action.signal, action.grace)) {
    Feed({.kind = Event::Kind::kShimLost});
    return;
  }
  if (!state_.next || next_generation_.valid()) return;
  // An fsync takes as long as the stop does; nothing needs them one after the other.
  next_generation_ = std::async(std::launch::async, [this, next = state_.generation.value() + 1] {
    return folder_.WriteGeneration(Generation(next));
  });
}

Status RunLoop::RenewShim() {
  LeaveShim();
  return StartShim();
}

void RunLoop::LeaveShim() {
  if (!shim_) return;
  if (shim_watch_) loop_->Remove(*shim_watch_);
  shim_watch_.reset();
  if (shim_->Goodbye()) {
    // It kills what is left, removes its cgroup and goes; the limit is for a kernel that hangs.
    [[maybe_unused]] const auto gone = shim_->process().Wait(kShimExit);
  }
  shim_.reset();
}

void RunLoop::ArmTick() {
  if (tick_) loop_->Remove(*tick_);
  tick_.reset();
  if (state_.phase != Phase::kStarting && state_.phase != Phase::kGathering) return;
  tick_ = loop_->At(state_.deadline, [this] {
    tick_.reset();
    Feed({.kind = Event::Kind::kTick});
  });
}

void RunLoop::ReadSignals() {
  for (;;) {
    const auto signal = signals_->Read();
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
    if (state_.interrupts == 1 && state_.phase == Phase::kEnding) {
      console_->Say("muster: stopping the workers; once more kills them");
    }
  }
}

void RunLoop::ReadShim() {
  for (;;) {
    const auto message = shim_->Receive();
    if (!message && message.error().code() == Code::kInvalid) continue;
    if (!message) {
      loop_->Remove(*shim_watch_);
      shim_watch_.reset();
      shim_lost_ = true;
      Feed({.kind = Event::Kind::kShimLost});
      return;
    }
    if (!*message) return;
    Handle(**message);
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

void RunLoop::HandleZygote(const shim::Zygote& zygote) {
  if (zygote.alive != 0 || state_.phase != Phase::kRunning) return;
  // Nobody waits for it now; a new one is warm before it is needed.
  if (++zygote_deaths_ > kMaxZygoteDeaths || !launcher_->StartZygote(*shim_)) {
    state_.use_zygote = false;
  }
}

void RunLoop::HandleStarted(const shim::Started& started) {
  Event event{.kind = Event::Kind::kStarted,
              .rank = Rank(started.rank),
              .generation = Generation(started.generation)};
  if (started.error != 0) {
    event.kind = Event::Kind::kExited;
    event.ending = {.start_error = started.error, .time = clock_.Now()};
  } else {
    events_.Add("worker_started", {{"gen", started.generation},
                                   {"rank", started.rank},
                                   {"pid", started.pid},
                                   {"how", started.forked != 0 ? "fork" : "exec"}});
  }
  Feed(event);
}

void RunLoop::HandleExited(const shim::Exited& exited) {
  const Rank rank(exited.rank);
  const Generation generation(exited.generation);
  if (generation == state_.generation) ObserveRank(rank);
  Event event{.kind = Event::Kind::kExited, .rank = rank, .generation = generation};
  event.ending = {.code = exited.code,
                  .signal = exited.signal,
                  .start_error = exited.exec_error,
                  .never_found = exited.exec_error != 0,
                  .time = Instant(nanoseconds(exited.time_ns))};
  if (generation == state_.generation && IsOwnCrash(event.ending)) {
    event.text = ExceptionLine(logs_->LastWords({rank, generation, Stream::kErr}, kLastWords));
  }
  event.pid = exited.pid;
  logs_->Finish(rank, generation, clock_.Now() + seconds(1));
  Feed(event);
}

}  // namespace muster::agent

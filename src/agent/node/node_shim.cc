#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "agent/coordinator/plan.h"
#include "agent/launch/start_advice.h"
#include "agent/launch/sweep.h"
#include "agent/node/node_runner.h"
#include "agent/run/fault_record.h"
#include "agent/shim/job_cgroup.h"
#include "os/signals.h"
#include "os/wait_fd.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kShimExit = seconds(15);
constexpr auto kShimDeath = seconds(1);  // from the end of its socket to its own
// A daemon that holds the pipe costs a crash this much; a kill from outside costs nothing.
constexpr auto kLastWords = milliseconds(200);
// So long after a process that it started a rank may go down, too.
constexpr auto kOomTells = seconds(30);
constexpr int kMaxZygoteDeaths = 3;
constexpr auto kLoadingTold = seconds(5);
// A file system that a thousand nodes load torch from at once is slow.
constexpr auto kZygoteLoads = std::chrono::minutes(10);
constexpr Bytes kZygoteLog{1 << 20};

std::string WhatItLoads(const RunOptions& job) {
  return job.preload.empty() ? "its program" : job.preload;
}

/// A Ctrl-C that waits by now leaves it no more than `impatience`.
void AwaitShimExit(const ShimClient& shim, nanoseconds impatience) {
  Instant deadline = MonotonicClock::now() + kShimExit;
  while (MonotonicClock::now() < deadline) {
    const auto ended = os::WaitFd(shim.process().pidfd(), POLLIN, milliseconds(50));
    if (!ended || *ended) {
      static_cast<void>(shim.process().Poll());  // one that was taken over is no child of ours
      return;
    }
    sigset_t waiting;
    ::sigpending(&waiting);
    const bool interrupted = ::sigismember(&waiting, SIGINT) == 1;
    if (interrupted) deadline = std::min(deadline, MonotonicClock::now() + impatience);
  }
}

}  // namespace

Status NodeRunner::StartShim() {
  const auto grace = std::min<nanoseconds>(options_.job->policy.grace, kOrphanGrace);
  shim_.emplace(
      MUSTER_TRY(ShimClient::Start({.program = options_.job->shim,
                                    .id = options_.shim_id,
                                    .orphan_grace = std::chrono::duration_cast<milliseconds>(grace),
                                    .soft_nofile = options_.soft_nofile})));
  kept().Keep(kShimName, {shim_->fd(), shim_->process().pidfd()});
  zygote_alive_ = false;
  Handle(MUSTER_TRY(shim_->AwaitHello()));
  shim_watch_ =
      MUSTER_TRY(loop_.Watch(shim_->fd(), EPOLLIN, [this](std::uint32_t) { ReadShim(); }));
  EnsureZygote();
  return Ok();
}

void NodeRunner::UnwatchShim() {
  if (shim_watch_) loop_.Remove(*std::exchange(shim_watch_, {}));
}

void NodeRunner::ReadShim() {
  for (;;) {
    const auto message = shim_->Receive();
    if (!message && message.error().code() == Code::kInvalid) continue;
    if (!message) return LoseShim();
    if (!*message) return;
    Handle(**message);
    // What it said may have led to a new shim, or to none.
    if (!shim_ || !shim_watch_) return;
  }
}

void NodeRunner::Handle(const ShimMessage& message) {
  if (const auto* hello = std::get_if<shim::Hello>(&message)) {
    TakeCgroup(*hello);
  } else if (const auto* zygote = std::get_if<shim::Zygote>(&message)) {
    HandleZygote(*zygote);
  } else if (const auto* started = std::get_if<shim::Started>(&message)) {
    HandleStarted(*started);
  } else if (const auto* exited = std::get_if<shim::Exited>(&message)) {
    HandleExited(*exited);
  } else if (const auto* stopped = std::get_if<shim::Stopped>(&message)) {
    const Generation generation(stopped->generation);
    if (stop_unanswered_ && generation >= *stop_unanswered_) stop_unanswered_.reset();
    for (std::uint32_t i = 0; i < ranks_.count; ++i) {
      const Worker& worker = workers_[i];
      if (worker.pid != 0 && worker.spawned <= generation) GiveUpOn(ranks_.At(i));
    }
    Tell(report::Stopped{generation, stopped->left});
  }
}

/// Who follows knows it even when the shim is dead by then.
void NodeRunner::TakeCgroup(const shim::Hello& hello) {
  if (hello.has_cgroup == 0) return;  // one that was there before is still to be removed
  cgroup_ = hello.cgroup;
  const Fd folder(::open(cgroup_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) kept().Keep(kCgroupName, {folder.get()});
}

void NodeRunner::HandleStarted(const shim::Started& started) {
  const Rank rank(started.rank);
  const Generation spawned(started.generation);
  if (!ranks_.Has(rank)) return;  // of an earlier seat
  const bool current = At(rank).spawned == spawned;
  if (current) At(rank).starting = false;
  if (started.error != 0) {
    Tell(report::Exited{rank, spawned, 0,
                        Ending{.start_error = started.error,
                               .time = options_.clock->Now(),
                               .advice = StartAdvice(options_.job->program, started.error)}});
  } else {
    if (current) At(rank).pid = started.pid;
    Tell(report::Started{rank, spawned, started.pid, started.forked != 0});
  }
  StartWhenClear();
}

/// All that crash in a generation share one wait, and who dies of being stopped has none.
std::string NodeRunner::LastWordsOf(Rank rank, Generation spawned) {
  const Instant now = options_.clock->Now();
  if (!words_until_) words_until_ = now + kLastWords;
  const auto limit = stopping_ ? nanoseconds(0) : std::max(nanoseconds(0), *words_until_ - now);
  return logs_->LastWords({rank, spawned, Stream::kErr}, limit);
}

void NodeRunner::CountOomKills() {
  if (!oom_) return;
  const Instant now = options_.clock->Now();
  if (now - oom_grew_ > kOomTells) oom_told_ = oom_kills_;  // nobody went down with these
  const auto kills = oom_->Read();
  if (!kills || *kills == oom_kills_) return;
  oom_kills_ = *kills;
  oom_grew_ = now;
}

/// Whatever struck before has nothing to do with who dies from here on.
void NodeRunner::ForgetOomKills() {
  CountOomKills();
  oom_told_ = oom_kills_;
}

/// Of one that was killed most likely the rank itself, else all of what ranks had started.
std::uint64_t NodeRunner::TakeOomKills(bool killed) {
  CountOomKills();
  if (oom_kills_ <= oom_told_) return 0;
  const std::uint64_t kills = killed ? 1 : oom_kills_ - oom_told_;
  oom_told_ += kills;
  return kills;
}

void NodeRunner::HandleExited(const shim::Exited& exited) {
  const Rank rank(exited.rank);
  const Generation spawned(exited.generation);
  // One that survived SIGKILL in an earlier seat of this node: to the job it is long gone.
  if (!ranks_.Has(rank)) return logs_->Finish(rank, spawned, options_.clock->Now() + seconds(1));
  const bool current = spawned == At(rank).spawned;
  if (current) {
    At(rank).pid = 0;
    At(rank).killed.reset();
    // A fault is judged by what every rank had published by then.
    if (stopping_) {
      Tell(report::Progress{.places = {{rank, pages_->Read(rank)}}, .missed = pages_->missed()});
    } else {
      Publish();
    }
  }
  report::Exited report{.rank = rank, .spawned = spawned, .pid = exited.pid};
  report.ending = {.code = exited.code,
                   .signal = exited.signal,
                   .start_error = exited.exec_error,
                   .never_found = IsCommandAtFault(exited.exec_error),
                   .time = Instant(nanoseconds(exited.time_ns)),
                   .advice = StartAdvice(options_.job->program, exited.exec_error)};
  if (!stopping_ && !report.ending.ok()) {
    report.ending.oom_kills = TakeOomKills(report.ending.signal == SIGKILL);
  }
  if (current && rules_ && report.ending.ok()) rules_->Finish(rank);
  if (current && IsOwnCrash(report.ending)) {
    report.exception = ExceptionLine(LastWordsOf(rank, spawned));
  }
  logs_->Finish(rank, spawned, options_.clock->Now() + seconds(1));
  if (current) kept().Drop(RankName(rank));
  Tell(std::move(report));
  StartWhenClear();
}

/// Whatever was below it goes before anybody hears of it: who is started next meets none of it, and
/// a Stop is answered at once. `how`: when it is alive and no good.
void NodeRunner::LoseShim(std::string how) {
  UnwatchShim();
  if (!stopping_) Publish();  // a fault is judged by what every rank had published by then
  if (how.empty()) how = HowShimEnded();
  Sweep();
  ForgetWorkers();
  Tell(report::Lost{std::move(how)});
  // It stays kept until its loss was heard, so that whoever follows us in the middle misses it too.
  // By now there may be another.
  if (!shim_) kept().Drop(kShimName);
  if (stop_unanswered_) Tell(report::Stopped{*std::exchange(stop_unanswered_, {})});
}

/// Of one that was taken over nobody here hears it.
std::string NodeRunner::HowShimEnded() const {
  const auto exit = shim_->process().Wait(kShimDeath);
  if (!exit || !*exit) return "which died";
  return ((**exit).signal != 0 ? "" : "which ended with ") + os::Describe(**exit);
}

/// They went with the shim, and nobody says so of each.
void NodeRunner::ForgetWorkers() {
  start_.reset();
  zygote_alive_ = zygote_ready_ = false;
  for (std::uint32_t i = 0; i < ranks_.count; ++i) {
    if (workers_[i].spawned != Generation()) GiveUpOn(ranks_.At(i));
  }
}

void NodeRunner::LeaveShim() {
  if (!shim_) return;
  UnwatchShim();
  // It kills what is left, removes its cgroup and goes. One that is stopped or hangs, or dies of
  // something else meanwhile, is taken down with all that is below it.
  if (shim_->Goodbye()) AwaitShimExit(*shim_, options_.job->policy.kill_limit);
  Sweep();
  kept().Drop(kShimName);
}

void NodeRunner::Sweep() {
  // One that was taken over is no child of ours.
  if (shim_) static_cast<void>(shim_->process().Send(SIGKILL));
  shim_.reset();
  const Family& family = kept().family();
  Orphanage orphanage{.supervisor = family.supervisor,
                      .strangers = options_.strangers ? options_.strangers() : std::vector<int>(),
                      .mark = options_.strangers_mark};
  orphanage.strangers.insert(orphanage.strangers.end(), family.strangers.begin(),
                             family.strangers.end());
  left_cgroup_ = SweepAfterShim(cgroup_, orphanage) ? "" : cgroup_;
  kept().Drop(kCgroupName);  // last: who follows in the middle of it goes on with it
}

/// Of those ranks that run; of the others there is nothing to say.
void NodeRunner::Do(const order::TakeStacks& order) {
  std::vector<Rank> ranks;
  std::vector<stacks::Process> targets;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    ranks.push_back(ranks_.At(i));
    if (workers_[i].pid == 0) continue;
    targets.push_back({.rank = ranks_.At(i).value(), .pid = workers_[i].pid});
  }
  const auto say = [this, id = order.id, ranks](const StackTaker::Said& said) {
    if (said.taken) return Tell(report::StacksTaken{id, ranks});
    Tell(report::Stacks{id, ranks, said.json});
  };
  if (!shim_ || targets.empty()) return say({.json = stacks::ToJson(targets)});
  const std::string& shim = options_.job->shim;
  stack_taker_.Take(shim.substr(0, shim.rfind('/') + 1) + "muster-stacks", targets, *shim_, say);
}

/// Starts the zygote when there is none, so that it is warm before it is needed.
void NodeRunner::EnsureZygote() {
  if (!use_zygote_ || zygote_alive_ || !shim_) return;
  zygote_alive_ = zygote_deaths_ <= kMaxZygoteDeaths && launcher_->StartZygote(*shim_).has_value();
  zygote_ready_ = false;
  zygote_began_ = options_.clock->Now();
  if (!zygote_alive_ && !shim_->gone()) BreakZygote("");  // else the next shim gets one
}

bool NodeRunner::AwaitsZygote() const {
  return start_ && use_zygote_ && zygote_alive_ && !zygote_ready_;
}

void NodeRunner::TellLoading() {
  if (loading_) loop_.Remove(*loading_);
  loading_ = loop_.After(kLoadingTold, [this] {
    loading_.reset();
    if (!AwaitsZygote()) return;
    const auto passed = options_.clock->Now() - zygote_began_;
    if (passed < kZygoteLoads) {
      Tell(report::Loading{passed, zygote_pid_});
    } else {
      BreakZygote(fmt::format("the fork server did not load {} in {} minutes",
                              WhatItLoads(*options_.job), kZygoteLoads.count()));
    }
    if (AwaitsZygote()) TellLoading();
    StartWhenClear();
  });
}

void NodeRunner::HandleZygote(const shim::Zygote& zygote) {
  if (zygote.alive != 0) {
    zygote_pid_ = zygote.pid;
    if (zygote.ready == 0 || std::exchange(zygote_ready_, true)) return;
    zygote_was_ready_ = true;
    Tell(report::ZygoteReady{zygote.pid});
    return StartWhenClear();
  }
  zygote_alive_ = false;
  ++zygote_deaths_;
  if (!zygote_ready_ && !zygote_was_ready_) BreakZygote(WhyNoZygote(zygote));
  // When a generation is about to end, its workers are too: the next start sees to it.
  if (!stopping_ || start_) EnsureZygote();
  StartWhenClear();
}

void NodeRunner::BreakZygote(std::string why) {
  use_zygote_ = false;
  Tell(report::ZygoteBroken{std::move(why)});
}

/// Of one that never was ready: its last line says the most.
std::string NodeRunner::WhyNoZygote(const shim::Zygote& zygote) const {
  const auto log = options_.files->ReadAll(options_.folder + "/logs/zygote.log", kZygoteLog);
  const std::string words = log ? ExceptionLine(*log) : "";
  std::string how = fmt::format("ended with exit code {}", zygote.status);
  if (zygote.status < 0) how = "was killed by " + os::SignalName(-zygote.status);
  if (zygote.error != 0) how = fmt::format("could not be started: {}", std::strerror(zygote.error));
  return fmt::format("the fork server {} before it had loaded {}{}{}", how,
                     WhatItLoads(*options_.job), words.empty() ? "" : ": ", words);
}

}  // namespace muster::agent

#include "agent/node/node_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "agent/run/run_folder.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;

constexpr auto kHousekeeping = seconds(1);

}  // namespace

NodeRunner::NodeRunner(NodeOptions options, os::EventLoop& loop, OnReport on_report)
    : options_(std::move(options)),
      loop_(loop),
      on_report_(std::move(on_report)),
      ranks_{0, options_.ranks},
      workers_(options_.ranks),
      stack_taker_(loop),
      use_zygote_(!options_.job->zygote.empty()) {}

Result<std::unique_ptr<NodeRunner>> NodeRunner::Create(NodeOptions options, os::EventLoop& loop,
                                                       OnReport on_report) {
  std::unique_ptr<NodeRunner> node(new NodeRunner(std::move(options), loop, std::move(on_report)));
  MUSTER_TRY(node->SetUp());
  return node;
}

Status NodeRunner::SetUp() {
  launcher_.emplace(
      MUSTER_TRY(Launcher::Create(*options_.job, ranks_, options_.folder, options_.run_id)));
  if (auto oom = os::OomCount::Open()) oom_ = *std::move(oom);
  ForgetOomKills();
  MUSTER_TRY(StartRules());
  logs_ = MUSTER_TRY(LogKeeper::Start({.files = options_.files,
                                       .folder = options_.folder + "/logs",
                                       .console = options_.console,
                                       .clock = options_.clock,
                                       .tap = RuleTap()}));
  MUSTER_TRY(options_.place ? ResumeNode(*options_.place) : StartShim());
  housekeep_ = loop_.After(kHousekeeping, [this] { Housekeep(); });
  return Ok();
}

void NodeRunner::Send(const Order& order) {
  std::visit([this](const auto& what) { Do(what); }, order);
}

void NodeRunner::Do(const order::Seat& order) {
  if (const Status taken = TakeSeat(order.first); !taken) Tell(report::Failed{taken.error()});
}

Status NodeRunner::TakeSeat(std::uint32_t first) {
  if (std::exchange(seat_taken_over_, false) && ranks_.first == first) return Ok();
  TellWords(true);  // of the ranks of an earlier seat, for which it soon has no words
  ranks_.first = first;
  pages_.emplace(MUSTER_TRY(HeartbeatPages::Create(ranks_)));
  for (std::uint32_t i = 0; i < ranks_.count; ++i) {
    kept().Keep(PageName(ranks_.At(i)), {pages_->fd(ranks_.At(i))});
  }
  OpenLinks();
  return Ok();
}

void NodeRunner::OpenLinks() {
  links_.emplace(loop_, ranks_, [this](Rank rank, const os::RecoveryHost::Message& message) {
    Tell(report::Standing{rank, At(rank).spawned, message.quiesced.has_value()});
  });
  launcher_->Seat(ranks_.first);
}

void NodeRunner::Do(const order::Renew&) {
  LeaveShim();
  const Status renewed = StartShim();
  if (renewed) return;
  // Killed before it said a word, as any other may be.
  if (shim_ && shim_->gone()) return LoseShim();
  Tell(report::Failed{renewed.error()});
}

void NodeRunner::Do(const order::Start& order) {
  start_ = order;
  if (start_->master_addr.empty()) start_->master_addr = options_.store_host;
  use_zygote_ = use_zygote_ && order.via_zygote;
  EnsureZygote();
  if (AwaitsZygote()) TellLoading();
  StartWhenClear();
}

void NodeRunner::StartWhenClear() {
  if (!start_ || AwaitsZygote() || MakesRoom()) return;
  const order::Start order = *std::exchange(start_, {});
  if (!shim_) return;  // that it is lost was said, and counts for what starts, too
  if (const Status started = StartGeneration(order); !started) {
    return shim_->gone() ? LoseShim() : Tell(report::Failed{started.error()});
  }
  Tell(report::Begun{order.generation});
  PublishLater();
}

/// A Start may find older processes of its ranks, and they go first: whoever was cut off hears in
/// one moment that a rank is to be killed and started again, and of one that was started when the
/// next fault struck its coordinator did not know. True while somebody is waited for.
bool NodeRunner::MakesRoom() {
  if (start_->generation <= generation_) return false;  // it is refused
  const Instant now = options_.clock->Now();
  for (const Rank rank : start_->ranks) {
    if (!ranks_.Has(rank)) continue;
    if (At(rank).starting) return true;
    if (At(rank).pid == 0) continue;
    Do(order::Kill{rank});
    const Instant limit = *At(rank).killed + kDieLimit;
    if (now < limit) {
      if (room_) loop_.Remove(*room_);
      room_ = loop_.At(limit, [this] {
        room_.reset();
        StartWhenClear();
      });
      return true;
    }
    GiveUpOn(rank);
  }
  return false;
}

/// It does nothing any more: whenever it leaves the kernel, it is dead.
void NodeRunner::GiveUpOn(Rank rank) {
  At(rank).pid = 0;
  At(rank).starting = false;
  At(rank).killed.reset();
  logs_->Finish(rank, At(rank).spawned, options_.clock->Now() + seconds(1));
  kept().Drop(RankName(rank));
}

/// Two processes of one rank must not be, whoever orders it.
Status NodeRunner::CheckStart(const order::Start& order) {
  if (!pages_ || order.generation <= generation_) {
    return Error(Code::kPrecondition, fmt::format("generation {} cannot start behind {}",
                                                  order.generation.value(), generation_.value()));
  }
  std::vector<Rank> ranks = order.ranks;
  std::ranges::sort(ranks);
  const bool once = std::ranges::adjacent_find(ranks) == ranks.end();
  const bool free = std::ranges::all_of(ranks, [&](Rank rank) { return At(rank).pid == 0; });
  if (once && free) return Ok();
  return Error(Code::kPrecondition, "a rank that is to be started runs already");
}

Status NodeRunner::StartGeneration(const order::Start& order) {
  MUSTER_TRY(CheckStart(order));
  generation_ = order.generation;
  generation_begin_ = options_.clock->Now();
  stopping_ = false;
  ForgetOomKills();
  words_until_.reset();
  for (const Rank rank : order.ranks) {
    At(rank) = Worker{.spawned = order.generation, .starting = true};
  }
  for (Worker& worker : workers_) worker.stepped = false;
  BeginRules();
  if (options_.own_folder) {
    MUSTER_TRY(WriteGeneration(*options_.files, options_.folder, order.generation));
  }
  return launcher_->Start(
      {{order.generation, order.restart_count, order.world, order.master_addr, order.master_port},
       use_zygote_,
       order.ranks,
       order.keepers},
      *shim_, {*logs_, *pages_, *links_, kept()});
}

void NodeRunner::Do(const order::Go&) {
  if (rules_) rules_->Go();
}

void NodeRunner::Do(const order::Pause&) {
  if (rules_) rules_->Pause();
}

void NodeRunner::Do(const order::Abort& order) { launcher_->AbortCollectives(order.reason); }

void NodeRunner::Do(const order::Stop& order) {
  start_.reset();
  stopping_ = true;
  if (links_) links_->CloseAll();
  // It took everything along.
  if (!shim_) return Tell(report::Stopped{order.generation});
  stop_unanswered_ = order.generation;
  if (!shim_watch_) return LoseShim("which could not be watched");
  if (!shim_->Stop(order.generation, order.signal, order.grace)) LoseShim();
}

void NodeRunner::Do(const order::GiveUp&) {
  if (stop_unanswered_) LoseShim("which did not answer and was killed");
}

void NodeRunner::Do(const order::Kill& order) {
  if (!ranks_.Has(order.rank)) return;
  // One that is gone by now needs none; whoever waits for its death has a limit.
  if (shim_) static_cast<void>(shim_->Signal(SIGKILL, order.rank.value()));
  Worker& worker = At(order.rank);
  if (worker.pid != 0 && !worker.killed) worker.killed = options_.clock->Now();
}

void NodeRunner::Do(const order::Signal& order) {
  // A worker without a handler would die of it.
  if (shim_) static_cast<void>(shim_->Signal(order.number, shim::kAllRanks, true));
}

void NodeRunner::Do(const order::TellWords& order) {
  words_.push_back(order);
  TellWordsLater();
}

void NodeRunner::Do(const order::End&) {
  for (auto* timer : {&publish_, &loading_, &room_, &words_retry_, &housekeep_}) {
    if (*timer) loop_.Remove(**timer);
    timer->reset();
  }
  start_.reset();
  stack_taker_.Drop();
  for (std::uint32_t i = 0; i < ranks_.count; ++i) {
    kept().Drop(PageName(ranks_.At(i)));
    kept().Drop(RankName(ranks_.At(i)));
  }
  kept().Drop(kArenaName);
  LeaveShim();
  Publish();
  const bool stopped = logs_->Stop(seconds(1));
  TellWords(true);
  TellLosses();
  Tell(report::Ended{!stopped, left_cgroup_});
}

}  // namespace muster::agent

#include "agent/rules/rule_thread.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "agent/logs/line_framer.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace muster::agent::rules {
namespace {

// Waking later than this means that the process, or the machine, was stopped or starved.
constexpr auto kLate = std::chrono::seconds(1);

struct Chunk {
  LogId id;
  std::string bytes;
  bool gap = false;  ///< bytes before these were lost
};
struct Began {
  Generation generation;
  std::vector<Generation> spawned;
  bool before = false;  ///< by others
};
struct Gone {};
struct Paused {};
struct Finished {
  Rank rank;
};
struct Item {
  Instant time;
  std::variant<Chunk, Began, Gone, Paused, Finished> what;
};

spec::LogRule::Stream Of(Stream stream) {
  return stream == Stream::kOut ? spec::LogRule::Stream::kOut : spec::LogRule::Stream::kErr;
}

}  // namespace

struct RuleThread::Shared {
  Shared(RuleEngine rule_engine, const Clock& the_clock, OnFiring callback)
      : engine(std::move(rule_engine)), clock(the_clock), on_firing(std::move(callback)) {}

  void Push(Item item) {
    const MutexLock lock(mutex);
    items.push_back(std::move(item));
    changed.NotifyOne();
  }

  void PushBytes(const LogId& id, std::string_view bytes) {
    const Instant now = clock.Now();
    const MutexLock lock(mutex);
    bool& gap = gaps[id];
    if (waiting + bytes.size() > static_cast<std::size_t>(kMostWaiting.count)) {
      missed += bytes.size();
      gap = true;
      return;
    }
    waiting += bytes.size();
    items.push_back({now, Chunk{id, std::string(bytes), std::exchange(gap, false)}});
    changed.NotifyOne();
  }

  void Run() {
    for (;;) {
      std::deque<Item> taken;
      {
        const MutexLock lock(mutex);
        while (items.empty() && !stopping) {
          if (!changed.WaitUntil(mutex, engine.NextDeadline())) break;
        }
        if (stopping) return;
        taken.swap(items);
        waiting = 0;
      }
      for (const Item& item : taken) {
        std::visit([&](const auto& what) { Take(what, item.time); }, item.what);
        Report();
      }
      if (taken.empty()) {
        Tick(clock.Now());
      } else {
        // Everything from before it has been looked at, and more may follow without a pause.
        Tick(taken.back().time);
      }
    }
  }

  void Tick(Instant now) {
    Allow(now);
    engine.Tick(now);
    Report();
  }

  /// Nobody looked when the time was up: what was written meanwhile is still to be read.
  void Allow(Instant now) {
    const Instant due = engine.NextDeadline();
    if (due < now && now - due > kLate) engine.Skip(now - due + kLate);
  }

  void Report() {
    for (Firing& firing : engine.TakeFirings()) on_firing(std::move(firing));
  }

  void Take(const Chunk& chunk, Instant time) {
    const Rank rank = chunk.id.rank;
    if (rank.value() >= spawned.size() || spawned[rank.value()] != chunk.id.generation) return;
    LineFramer& framer = framers[chunk.id];
    if (chunk.gap) {
      framer.Break();
      engine.Gap(rank, time);
    }
    Allow(time);
    framer.Feed(chunk.bytes, [&](std::string_view line, bool continued) {
      if (!continued) engine.TakeLine(rank, Of(chunk.id.stream), line, time);
    });
  }
  void Take(const Began& began, Instant time) {
    spawned = began.spawned;
    // Survivors go on in their lines; the others have streams of their own.
    std::erase_if(framers, [&](const auto& entry) {
      const LogId& id = entry.first;
      return spawned.size() <= id.rank.value() || spawned[id.rank.value()] != id.generation;
    });
    if (began.before) {
      engine.Resume(began.generation, time);
    } else {
      engine.Begin(began.generation, time);
    }
  }
  void Take(const Gone&, Instant time) { engine.Go(time); }
  void Take(const Paused&, Instant) { engine.Pause(); }
  void Take(const Finished& finished, Instant time) { engine.Finish(finished.rank, time); }

  RuleEngine engine;  // the thread's, as are the two below
  std::vector<Generation> spawned;
  std::map<LogId, LineFramer> framers;
  const Clock& clock;
  const OnFiring on_firing;
  std::jthread thread;  // the owner's
  Mutex mutex;
  CondVar changed;
  std::deque<Item> items MUSTER_GUARDED_BY(mutex);
  std::map<LogId, bool> gaps MUSTER_GUARDED_BY(mutex);
  std::size_t waiting MUSTER_GUARDED_BY(mutex) = 0;
  std::uint64_t missed MUSTER_GUARDED_BY(mutex) = 0;
  bool stopping MUSTER_GUARDED_BY(mutex) = false;
};

RuleThread::RuleThread(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}
RuleThread::~RuleThread() { Stop(); }

Result<std::unique_ptr<RuleThread>> RuleThread::Start(RuleEngine engine, const Clock& clock,
                                                      OnFiring on_firing) {
  auto shared = std::make_unique<Shared>(std::move(engine), clock, std::move(on_firing));
  shared->thread = MUSTER_TRY(Within(
      "log rules", StartThread("log-rules", [it = shared.get()](const auto&) { it->Run(); })));
  return std::unique_ptr<RuleThread>(new RuleThread(std::move(shared)));
}

void RuleThread::Bytes(const LogId& id, std::string_view bytes) { shared_->PushBytes(id, bytes); }

void RuleThread::Begin(Generation generation, std::vector<Generation> spawned) {
  shared_->Push({shared_->clock.Now(), Began{generation, std::move(spawned)}});
}

void RuleThread::Resume(Generation generation, std::vector<Generation> spawned) {
  shared_->Push({shared_->clock.Now(), Began{generation, std::move(spawned), true}});
}
void RuleThread::Go() { shared_->Push({shared_->clock.Now(), Gone{}}); }
void RuleThread::Pause() { shared_->Push({shared_->clock.Now(), Paused{}}); }
void RuleThread::Finish(Rank rank) { shared_->Push({shared_->clock.Now(), Finished{rank}}); }

std::uint64_t RuleThread::TakeMissed() {
  const MutexLock lock(shared_->mutex);
  return std::exchange(shared_->missed, 0);
}

void RuleThread::Stop() {
  {
    const MutexLock lock(shared_->mutex);
    shared_->stopping = true;
    shared_->changed.NotifyAll();
  }
  if (shared_->thread.joinable()) shared_->thread.join();
}

}  // namespace muster::agent::rules

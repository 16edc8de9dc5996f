#include "data/stream/decode_pool.h"

#include <fmt/format.h>

#include "base/duration.h"

namespace muster::data {

DecodePool::DecodePool(const BatchFiller& filler, const Options& options)
    : filler_(filler),
      options_(options),
      slots_(options.depth),
      head_(options.first_step),
      next_step_(options.first_step) {}

Result<std::unique_ptr<DecodePool>> DecodePool::Start(const BatchFiller& filler,
                                                      const Options& options) {
  std::unique_ptr<DecodePool> pool(new DecodePool(filler, options));
  auto threads = StartCrew({.name = "muster-data",
                            .threads = options.threads,
                            .body = [&pool = *pool](std::size_t, const auto&) { pool.Work(); },
                            .stop = [&pool = *pool] { pool.Stop(); }});
  if (!threads) return std::move(threads.error()).Within("decode");
  pool->threads_ = *std::move(threads);
  return pool;
}

DecodePool::~DecodePool() { Stop(); }

void DecodePool::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  work_.NotifyAll();
}

bool DecodePool::IsComplete(std::uint64_t step) {
  const Slot& slot = SlotOf(step);
  return slot.storage != nullptr && slot.storage->step == step && slot.missing == 0;
}

bool DecodePool::MayBegin() {
  return next_step_ < head_ + slots_.size() && next_step_ < options_.end_step;
}

Result<std::shared_ptr<const BatchStorage>> DecodePool::Take() {
  const Instant deadline = MonotonicClock::now() + options_.patience;
  std::shared_ptr<const BatchStorage> batch;
  {
    const MutexLock lock(mutex_);
    while (!IsComplete(head_)) {
      if (ready_.WaitUntil(mutex_, deadline)) continue;
      return Error(Code::kDeadline,
                   fmt::format("step {} was not decoded within {}", head_,
                               FormatDuration(options_.patience)),
                   "is the disk that holds the dataset still there?");
    }
    Slot& slot = SlotOf(head_);
    if (slot.error) return *slot.error;
    batch = std::move(slot.storage);
    slot = Slot{};
    ++head_;
  }
  work_.NotifyAll();
  return batch;
}

void DecodePool::Work() {
  while (const auto task = Claim()) {
    Finish(*task, filler_.Fill(*task->order, task->shard, *task->storage));
  }
}

std::optional<DecodePool::Task> DecodePool::Claim() {
  const MutexLock lock(mutex_);
  while (!stopping_ && !MayBegin()) {
    work_.WaitUntil(mutex_, MonotonicClock::now() + options_.patience);
  }
  if (stopping_) return std::nullopt;
  if (next_shard_ == 0) Begin(next_step_);
  const Slot& slot = SlotOf(next_step_);
  Task task{next_step_, next_shard_, slot.storage, slot.order};
  if (++next_shard_ == filler_.shards()) {
    next_shard_ = 0;
    ++next_step_;
  }
  return task;
}

void DecodePool::Begin(std::uint64_t step) {
  const std::uint64_t epoch = step / filler_.steps_per_epoch();
  if (order_ == nullptr || order_epoch_ != epoch) {
    order_ = filler_.OrderOf(step);
    order_epoch_ = epoch;
  }
  SlotOf(step) =
      Slot{.storage = filler_.NewStorage(step), .order = order_, .missing = filler_.shards()};
}

void DecodePool::Finish(const Task& task, Status status) {
  const MutexLock lock(mutex_);
  Slot& slot = SlotOf(task.step);
  // Of several bad rows the first one is reported, whichever thread found its own first.
  if (!status && (!slot.error || task.shard < slot.error_shard)) {
    slot.error = std::move(status).error();
    slot.error_shard = task.shard;
  }
  if (--slot.missing == 0) ready_.NotifyAll();
}

}  // namespace muster::data

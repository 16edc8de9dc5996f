#include "data/stream/decode_pool.h"

#include <fmt/format.h>
#include <pthread.h>

namespace muster::data {
namespace {

constexpr std::chrono::minutes kPatience{5};

}  // namespace

DecodePool::DecodePool(const BatchFiller& filler, const Options& options)
    : filler_(filler),
      options_(options),
      slots_(options.depth),
      head_(options.first_step),
      next_{.step = options.first_step} {
  for (unsigned number = 0; number < options.threads; ++number) {
    threads_.emplace_back([this, number] { Work(number); });
  }
}

DecodePool::~DecodePool() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
}

Result<std::shared_ptr<const BatchStorage>> DecodePool::Take() {
  std::unique_lock lock(mutex_);
  Slot& slot = SlotOf(head_);
  const bool complete = ready_.wait_for(lock, kPatience, [&] {
    return slot.storage != nullptr && slot.storage->step == head_ && slot.missing == 0;
  });
  if (!complete) {
    return Error(Code::kDeadline,
                 fmt::format("step {} was not decoded within {} minutes", head_, kPatience.count()),
                 "is the disk that holds the dataset still there?");
  }
  if (slot.error) return *slot.error;
  std::shared_ptr<const BatchStorage> batch = std::move(slot.storage);
  slot = Slot{};
  ++head_;
  lock.unlock();
  work_.notify_all();
  return batch;
}

void DecodePool::Work(unsigned number) {
  ::pthread_setname_np(::pthread_self(), fmt::format("muster-data-{}", number).c_str());
  std::unique_lock lock(mutex_);
  while (const auto task = Claim(lock)) {
    Slot& slot = SlotOf(task->step);
    BatchStorage& storage = *slot.storage;
    const std::shared_ptr<const Order> order = slot.order;
    lock.unlock();
    Status status = filler_.Fill(*order, task->shard, storage);
    lock.lock();
    Finish(*task, std::move(status));
  }
}

std::optional<DecodePool::Task> DecodePool::Claim(std::unique_lock<std::mutex>& lock) {
  work_.wait(lock, [&] {
    return stopping_ || (next_.step < head_ + slots_.size() && next_.step < options_.end_step);
  });
  if (stopping_) return std::nullopt;
  const Task task = next_;
  if (task.shard == 0) Begin(task.step);
  if (++next_.shard == filler_.shards()) next_ = {.step = task.step + 1};
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
  Slot& slot = SlotOf(task.step);
  // Of several bad rows the first one is reported, whichever thread found its own first.
  if (!status && (!slot.error || task.shard < slot.error_shard)) {
    slot.error = std::move(status).error();
    slot.error_shard = task.shard;
  }
  if (--slot.missing == 0) ready_.notify_all();
}

}  // namespace muster::data

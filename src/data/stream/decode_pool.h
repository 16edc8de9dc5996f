#pragma once
// The decode threads of a loader. They fill the micro-shards of the next `depth` steps in order;
// the consumer takes the steps in order. What a step holds does not depend on the threads, only
// when it is ready does. At most `depth` filled or half-filled batches exist besides those handed
// out.
//
// One consumer thread calls Take; Start starts all threads or none, the destructor stops and joins.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "data/stream/batch_filler.h"

namespace muster::data {

class DecodePool {
 public:
  struct Options {
    std::uint64_t first_step = 0;
    std::uint64_t end_step = 0;  ///< no step from here on is begun
    unsigned threads = 1;
    std::size_t depth = 1;
    std::chrono::nanoseconds patience = std::chrono::minutes(5);  ///< with a step
  };
  static Result<std::unique_ptr<DecodePool>> Start(const BatchFiller& filler,
                                                   const Options& options);
  ~DecodePool();
  DecodePool(const DecodePool&) = delete;
  DecodePool& operator=(const DecodePool&) = delete;

  /// The next step's batch, waiting for it; a step that failed gives its error now and for ever.
  /// Deadline when it is not there within `patience`; it may be asked for again.
  Result<std::shared_ptr<const BatchStorage>> Take();

 private:
  struct Slot {
    std::shared_ptr<BatchStorage> storage;
    std::shared_ptr<const Order> order;
    std::size_t missing = 0;  ///< micro-shards that are not filled yet
    std::optional<Error> error;
    std::size_t error_shard = 0;
  };
  /// A micro-shard to fill, with what that takes.
  struct Task {
    std::uint64_t step = 0;
    std::size_t shard = 0;
    std::shared_ptr<BatchStorage> storage;
    std::shared_ptr<const Order> order;
  };

  DecodePool(const BatchFiller& filler, const Options& options);
  void Stop();
  void Work();
  /// Waits for work; nullopt: stop.
  std::optional<Task> Claim();
  void Begin(std::uint64_t step) MUSTER_REQUIRES(mutex_);
  void Finish(const Task& task, Status status);
  Slot& SlotOf(std::uint64_t step) MUSTER_REQUIRES(mutex_) { return slots_[step % slots_.size()]; }
  bool IsComplete(std::uint64_t step) MUSTER_REQUIRES(mutex_);
  bool MayBegin() MUSTER_REQUIRES(mutex_);

  const BatchFiller& filler_;
  const Options options_;
  Mutex mutex_;
  CondVar work_;   ///< a step may be begun, or stop
  CondVar ready_;  ///< a step is complete
  std::vector<Slot> slots_ MUSTER_GUARDED_BY(mutex_);
  std::shared_ptr<const Order> order_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t order_epoch_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t head_ MUSTER_GUARDED_BY(mutex_);  ///< the step that the consumer takes next
  std::uint64_t next_step_ MUSTER_GUARDED_BY(mutex_);
  std::size_t next_shard_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace muster::data

#include "data/pack/batch_sequencer.h"

namespace muster::data {
namespace {

/// Every wait looks again after so long; a slow disk on the other side is no error.
constexpr std::chrono::minutes kLook{1};

}  // namespace

std::unique_ptr<RowColumns> BatchSequencer::Take() {
  const MutexLock lock(mutex_);
  if (spare_.empty()) return std::make_unique<RowColumns>();
  std::unique_ptr<RowColumns> columns = std::move(spare_.back());
  spare_.pop_back();
  return columns;
}

void BatchSequencer::Recycle(std::unique_ptr<RowColumns> columns) {
  columns->Clear();
  const MutexLock lock(mutex_);
  spare_.push_back(std::move(columns));
}

bool BatchSequencer::HasBatch(std::uint64_t chunk) const {
  const auto found = waiting_.find(chunk);
  return found != waiting_.end() && !found->second.empty();
}

bool BatchSequencer::MayHold(std::uint64_t chunk) const {
  return held_ < budget_ || (chunk == head_ && !HasBatch(chunk));
}

bool BatchSequencer::Put(std::uint64_t chunk, RawBatch batch) {
  const MutexLock lock(mutex_);
  while (!stopped_ && !MayHold(chunk)) room_.WaitUntil(mutex_, MonotonicClock::now() + kLook);
  if (stopped_) return false;
  held_ += batch.body.images.size();
  waiting_[chunk].push_back(std::move(batch));
  if (chunk == head_) arrived_.NotifyOne();
  return true;
}

void BatchSequencer::Fail(std::uint64_t chunk, Error error) {
  const MutexLock lock(mutex_);
  errors_.emplace(chunk, std::move(error));
  arrived_.NotifyOne();
}

void BatchSequencer::WorkerDone() {
  const MutexLock lock(mutex_);
  --workers_;
  arrived_.NotifyOne();
}

void BatchSequencer::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  room_.NotifyAll();
}

void BatchSequencer::Cancel() {
  const MutexLock lock(mutex_);
  cancelled_ = true;
  arrived_.NotifyAll();
}

Result<std::optional<RawBatch>> BatchSequencer::Next() {
  const MutexLock lock(mutex_);
  while (!cancelled_ && !HasBatch(head_) && !errors_.contains(head_) && workers_ != 0) {
    arrived_.WaitUntil(mutex_, MonotonicClock::now() + kLook);
  }
  if (cancelled_) return std::nullopt;
  if (!HasBatch(head_)) {
    // Chunks are claimed in order, so the lowest failed one is the first bad row of the input.
    if (!errors_.empty()) return errors_.begin()->second;
    return std::nullopt;
  }
  const auto mine = waiting_.find(head_);
  RawBatch batch = std::move(mine->second.front());
  mine->second.pop_front();
  held_ -= batch.body.images.size();
  if (batch.last) {
    waiting_.erase(mine);
    ++head_;
  }
  room_.NotifyAll();
  return batch;
}

}  // namespace muster::data

#include "data/pack/batch_sequencer.h"

namespace muster::data {

std::unique_ptr<RowColumns> BatchSequencer::Take() {
  const std::scoped_lock lock(mutex_);
  if (spare_.empty()) return std::make_unique<RowColumns>();
  std::unique_ptr<RowColumns> columns = std::move(spare_.back());
  spare_.pop_back();
  return columns;
}

void BatchSequencer::Recycle(std::unique_ptr<RowColumns> columns) {
  columns->Clear();
  const std::scoped_lock lock(mutex_);
  spare_.push_back(std::move(columns));
}

bool BatchSequencer::MayHold(std::uint64_t chunk) const {
  if (chunk != head_) return held_ < budget_;
  const auto mine = waiting_.find(chunk);
  return mine == waiting_.end() || mine->second.empty() || held_ < budget_;
}

bool BatchSequencer::Put(std::uint64_t chunk, RawBatch batch) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return stopped_ || MayHold(chunk); });
  if (stopped_) return false;
  held_ += batch.body.images.size();
  waiting_[chunk].push_back(std::move(batch));
  if (chunk == head_) arrived_.notify_one();
  return true;
}

void BatchSequencer::Fail(std::uint64_t chunk, Error error) {
  const std::scoped_lock lock(mutex_);
  errors_.emplace(chunk, std::move(error));
  arrived_.notify_one();
}

void BatchSequencer::WorkerDone() {
  const std::scoped_lock lock(mutex_);
  --workers_;
  arrived_.notify_one();
}

void BatchSequencer::Stop() {
  const std::scoped_lock lock(mutex_);
  stopped_ = true;
  room_.notify_all();
}

Result<std::optional<RawBatch>> BatchSequencer::Next() {
  std::unique_lock lock(mutex_);
  const auto ready = [&] {
    const auto mine = waiting_.find(head_);
    return (mine != waiting_.end() && !mine->second.empty()) || errors_.contains(head_) ||
           workers_ == 0;
  };
  arrived_.wait(lock, ready);
  const auto mine = waiting_.find(head_);
  if (mine == waiting_.end() || mine->second.empty()) {
    // Chunks are claimed in order, so the lowest failed one is the first bad row of the input.
    if (!errors_.empty()) return errors_.begin()->second;
    return std::nullopt;
  }
  RawBatch batch = std::move(mine->second.front());
  mine->second.pop_front();
  held_ -= batch.body.images.size();
  if (batch.last) {
    waiting_.erase(mine);
    ++head_;
  }
  room_.notify_all();
  return batch;
}

}  // namespace muster::data

#include "agent/logs/stream_buffer.h"

#include <utility>

#include "profile/logs/log_index.h"

namespace muster::agent {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{4} << 10;

}  // namespace

void StreamBuffer::Append(std::string bytes, Instant at) {
  const MutexLock lock(mutex_);
  tail_ += bytes;
  // Trimmed at twice the size, so that a byte is moved once and not at every append.
  const auto keep = static_cast<std::size_t>(kTailBytes.count);
  if (tail_.size() > 2 * keep) tail_.erase(0, tail_.size() - keep);
  held_ += static_cast<std::int64_t>(bytes.size());
  if (!chunks_.empty() && chunks_.back().bytes.size() + bytes.size() <= kChunkBytes &&
      at - chunks_.back().at < profile::kLogMarkTime) {
    chunks_.back().bytes += bytes;
  } else {
    chunks_.push_back({at, std::move(bytes)});
  }
  while (held_ > capacity_.count && chunks_.size() > 1) {
    const auto size = chunks_.front().bytes.size();
    dropped_ += size;
    held_ -= static_cast<std::int64_t>(size);
    chunks_.pop_front();
  }
  news_.store(true, std::memory_order_release);
}

void StreamBuffer::End() {
  const MutexLock lock(mutex_);
  ended_ = true;
  news_.store(true, std::memory_order_release);
  end_.NotifyAll();
}

StreamBuffer::Taken StreamBuffer::Take() {
  const MutexLock lock(mutex_);
  news_.store(false, std::memory_order_relaxed);
  Taken taken{std::exchange(dropped_, 0), std::exchange(chunks_, {}), ended_};
  held_ = 0;
  return taken;
}

std::string StreamBuffer::Tail() const {
  const MutexLock lock(mutex_);
  const auto keep = static_cast<std::size_t>(kTailBytes.count);
  return tail_.size() > keep ? tail_.substr(tail_.size() - keep) : tail_;
}

bool StreamBuffer::ended() const {
  const MutexLock lock(mutex_);
  return ended_;
}

void StreamBuffer::AwaitEnd(Instant deadline) const {
  const MutexLock lock(mutex_);
  while (!ended_ && end_.WaitUntil(mutex_, deadline)) {
  }
}

}  // namespace muster::agent

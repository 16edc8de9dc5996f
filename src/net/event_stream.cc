#include "net/event_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "net/stream_state.h"

namespace muster::net {

Status StreamState::Push(SharedFrame frame) {
  if (end_ || closing_) return Error(Code::kCancelled, "the event stream has ended");
  // One frame may be larger than the queue: it must be possible to send at all.
  if (bytes_ > 0 && bytes_ + frame->size() > limit_) {
    const std::size_t held = bytes_;
    End(StreamEnd::kSlowReader);
    if (carrier_ != nullptr) carrier_->Cut();
    return Error(Code::kExhausted,
                 fmt::format("the reader of an event stream is too slow: {} bytes wait for it, at "
                             "most {} may",
                             held, limit_));
  }
  bytes_ += frame->size();
  frames_.push_back(std::move(frame));
  if (carrier_ != nullptr) carrier_->Wake();
  return Ok();
}

std::size_t StreamState::Take(char* out, std::size_t most) {
  std::size_t taken = 0;
  while (taken < most && !frames_.empty()) {
    const std::string& frame = *frames_.front();
    const std::size_t count = std::min(most - taken, frame.size() - offset_);
    frame.copy(out + taken, count, offset_);
    taken += count;
    offset_ += count;
    if (offset_ < frame.size()) break;
    frames_.pop_front();
    offset_ = 0;
  }
  bytes_ -= taken;
  active_ = active_ || taken > 0;
  return taken;
}

void StreamState::Close() {
  if (end_ || closing_) return;
  closing_ = true;
  if (carrier_ != nullptr) carrier_->Wake();
}

void StreamState::End(StreamEnd end) {
  if (end_) return;
  end_ = end;
  frames_.clear();
  bytes_ = 0;
}

void StreamState::TellEnd() {
  carrier_ = nullptr;
  if (const auto tell = std::exchange(on_end_, {})) tell(*end_);
}

EventStream& EventStream::operator=(EventStream&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

EventStream::~EventStream() {
  if (!state_) return;
  state_->set_on_end({});
  state_->Close();
}

Status EventStream::Send(SharedFrame frame) { return state_->Push(std::move(frame)); }
void EventStream::Close() { state_->Close(); }
bool EventStream::open() const { return !state_->end() && !state_->closing(); }
std::size_t EventStream::queued_bytes() const { return state_->queued_bytes(); }
void EventStream::OnEnd(std::function<void(StreamEnd)> on_end) {
  state_->set_on_end(std::move(on_end));
}

}  // namespace muster::net

#pragma once
// One reader's Server-Sent Events, as a handler of the server sees them. What is sent goes into a
// queue of bounded size; a reader that is so slow that it would overflow is cut off and the stream
// has ended with kSlowReader: events are never dropped from the middle, and never held without
// bound. The reader may come back with its Last-Event-ID.
//
// Loop thread only. Letting go of the handle ends the stream after what is queued; the handle may
// outlive the server.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "net/sse.h"

namespace muster::net {

/// Bytes that many streams send alike, made once: FormatEvent's.
using SharedFrame = std::shared_ptr<const std::string>;
inline SharedFrame ShareEvent(const Event& event) {
  return std::make_shared<const std::string>(FormatEvent(event));
}

enum class StreamEnd {
  kClosed,      ///< by us, after all that was queued
  kPeerGone,    ///< the reader closed its end, or its connection broke
  kSlowReader,  ///< it did not take what was sent
  kServerGone,  ///< the server object was destroyed
};

class StreamState;

class EventStream {
 public:
  explicit EventStream(std::shared_ptr<StreamState> state) : state_(std::move(state)) {}
  EventStream(EventStream&&) noexcept = default;
  EventStream& operator=(EventStream&& other) noexcept;
  ~EventStream();

  /// Cancelled when the stream has ended, Exhausted when this would overflow the queue, which ends
  /// it. Events that were accepted before may or may not have reached the reader.
  Status Send(const Event& event) { return Send(ShareEvent(event)); }
  Status Send(SharedFrame frame);
  /// Ends the stream after what is queued.
  void Close();
  bool open() const;
  std::size_t queued_bytes() const;

  /// Called once when the stream has ended, in a later turn of the loop or by the server's
  /// destructor; not when this handle was let go before.
  void OnEnd(std::function<void(StreamEnd)> on_end);

 private:
  std::shared_ptr<StreamState> state_;
};

}  // namespace muster::net

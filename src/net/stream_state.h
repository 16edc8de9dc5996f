#pragma once
// What an EventStream and the connection that carries it share: the queue and how the stream ended.
// Internal to the server; loop thread only.

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>

#include "net/event_stream.h"

namespace muster::net {

/// The connection, as its stream sees it.
class StreamCarrier {
 public:
  virtual ~StreamCarrier() = default;
  virtual void Wake() = 0;  ///< there is something to take, or the end
  virtual void Cut() = 0;   ///< the stream has ended at once; drop the connection
};

class StreamState {
 public:
  explicit StreamState(std::size_t limit) : limit_(limit) {}

  Status Push(SharedFrame frame);
  /// Copies at most `most` bytes out of the queue; 0 when it is empty.
  std::size_t Take(char* out, std::size_t most);
  void Close();
  /// The first reason stays. Empties the queue.
  void End(StreamEnd end);
  /// Calls the owner, once, when the stream has ended.
  void TellEnd();

  void set_carrier(StreamCarrier* carrier) { carrier_ = carrier; }
  void set_on_end(std::function<void(StreamEnd)> on_end) { on_end_ = std::move(on_end); }
  bool closing() const { return closing_; }
  const std::optional<StreamEnd>& end() const { return end_; }
  std::size_t queued_bytes() const { return bytes_; }
  /// Whether anything was taken since the last call.
  bool TakeActivity() { return std::exchange(active_, false); }

 private:
  std::size_t limit_;
  std::deque<SharedFrame> frames_;
  std::size_t offset_ = 0;  ///< what was taken of the first frame
  std::size_t bytes_ = 0;
  bool closing_ = false;
  bool active_ = false;
  std::optional<StreamEnd> end_;
  StreamCarrier* carrier_ = nullptr;
  std::function<void(StreamEnd)> on_end_;
};

}  // namespace muster::net

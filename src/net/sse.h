#pragma once
// Server-Sent Events (text/event-stream) as the WHATWG HTML standard, section 9.2 "Server-sent
// events", defines them: an incremental parser and its counterpart. The parser takes bytes in any
// pieces from anyone; lines end in LF, CR or CRLF, a byte order mark at the start is skipped, and
// what is no UTF-8 becomes U+FFFD. Limits are ours: the standard has none.
//
// Values; single-threaded.

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::net {

struct Event {
  std::string id;    ///< the last id seen on the stream; empty when there was none
  std::string type;  ///< "message" when the sender named none
  std::string data;
  bool operator==(const Event&) const = default;
};

/// The bytes of an event on the wire. An empty id or type is left out. A newline in id or type, or
/// NUL in the id, cannot be said: it is a bug of ours (MUSTER_CHECK).
std::string FormatEvent(const Event& event);
/// A line that readers skip: ":text\n\n". It shows that the sender lives.
std::string FormatComment(std::string_view text);
/// Asks readers to wait so long before they connect again.
std::string FormatRetry(std::chrono::milliseconds wait);

struct SseLimits {
  std::size_t line = 16 << 20;   ///< bytes of one line
  std::size_t event = 32 << 20;  ///< bytes of one event's data, type and id
};

class SseParser {
 public:
  using OnEvent = std::function<void(Event)>;

  explicit SseParser(SseLimits limits = {}) : limits_(limits) {}

  /// Calls `on_event` for every event that is complete with these bytes. Precondition: a limit is
  /// exceeded; then the stream is of no use any more and every later call fails alike. An event
  /// that the end of the stream cut off is never seen, as the standard wants it.
  Status Feed(std::string_view bytes, const OnEvent& on_event);

  /// What to send as Last-Event-ID when connecting again.
  const std::string& last_event_id() const { return last_id_; }
  /// The sender's wish, when it had one.
  std::optional<std::chrono::milliseconds> retry() const { return retry_; }

 private:
  Status TakeLine(std::string_view line, const OnEvent& on_event);
  void TakeField(std::string_view name, std::string_view value);
  void Dispatch(const OnEvent& on_event);
  Error TooLong(std::string_view what, std::size_t limit);

  SseLimits limits_;
  std::string line_;  ///< the piece of a line that has come
  std::string id_;
  std::string type_;
  std::string data_;
  std::string last_id_;
  std::optional<std::chrono::milliseconds> retry_;
  bool has_data_ = false;
  bool after_return_ = false;  ///< a CR ended the last line; a LF that follows belongs to it
  bool first_line_ = true;     ///< a byte order mark may stand here
  bool failed_ = false;
};

}  // namespace muster::net

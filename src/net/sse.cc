#include "net/sse.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster::net {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kMostRetryDigits = 15;  // milliseconds; more would overflow what follows

bool IsOneLine(std::string_view text) {
  return text.find_first_of("\r\n") == std::string_view::npos;
}

/// Two searches of the C library are many times faster than one for either character.
std::size_t LineEnd(std::string_view bytes) {
  const std::size_t newline = bytes.find('\n');
  return std::min(newline, bytes.substr(0, newline).find('\r'));
}

std::string AsUtf8(std::string text) {
  if (IsUtf8(text)) return text;
  return CutText(text, std::string::npos);
}

void AddData(std::string& out, std::string_view data) {
  for (;;) {
    const std::size_t end = data.find_first_of("\r\n");
    out += "data: ";
    out += data.substr(0, end);
    out += '\n';
    if (end == std::string_view::npos) return;
    const bool pair = data.substr(end).starts_with("\r\n");
    data.remove_prefix(end + (pair ? 2 : 1));
  }
}

}  // namespace

std::string FormatEvent(const Event& event) {
  MUSTER_CHECK(IsOneLine(event.id) && event.id.find('\0') == std::string::npos);
  MUSTER_CHECK(IsOneLine(event.type));
  std::string out;
  out.reserve(event.data.size() + event.id.size() + event.type.size() + 32);
  if (!event.id.empty()) out += "id: " + event.id + "\n";
  if (!event.type.empty()) out += "event: " + event.type + "\n";
  AddData(out, event.data);
  out += '\n';
  return out;
}

std::string FormatComment(std::string_view text) {
  MUSTER_CHECK(IsOneLine(text));
  return fmt::format(":{}\n\n", text);
}

std::string FormatRetry(std::chrono::milliseconds wait) {
  return fmt::format("retry: {}\n\n", std::max<std::int64_t>(wait.count(), 0));
}

Error SseParser::TooLong(std::string_view what, std::size_t limit) {
  failed_ = true;
  line_ = {};
  data_ = {};
  return {Code::kPrecondition,
          fmt::format("the event stream has {} of more than {} bytes", what, limit)};
}

Status SseParser::Feed(std::string_view bytes, const OnEvent& on_event) {
  if (failed_) return Error(Code::kPrecondition, "the event stream broke a limit before");
  while (!bytes.empty()) {
    if (std::exchange(after_return_, false) && bytes[0] == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = LineEnd(bytes);
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > limits_.line) return TooLong("a line", limits_.line);
    if (end == std::string_view::npos) {
      line_ += piece;
      return Ok();
    }
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (line_.empty()) {
      MUSTER_TRY(TakeLine(piece, on_event));
      continue;
    }
    line_ += piece;
    const std::string line = std::exchange(line_, {});
    MUSTER_TRY(TakeLine(line, on_event));
  }
  return Ok();
}

Status SseParser::TakeLine(std::string_view line, const OnEvent& on_event) {
  if (std::exchange(first_line_, false) && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  if (line.empty()) {
    Dispatch(on_event);
    return Ok();
  }
  const std::size_t colon = line.find(':');
  if (colon == 0) return Ok();  // a comment
  std::string_view value;
  if (colon != std::string_view::npos) {
    value = line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
  }
  if (data_.size() + value.size() > limits_.event) return TooLong("an event", limits_.event);
  TakeField(line.substr(0, colon), value);
  return Ok();
}

void SseParser::TakeField(std::string_view name, std::string_view value) {
  if (name == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  } else if (name == "event") {
    type_ = value;
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) id_ = AsUtf8(std::string(value));
  } else if (name == "retry") {
    const bool digits = std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || value.empty() || value.size() > kMostRetryDigits) return;
    std::int64_t milliseconds = 0;
    for (const char c : value) milliseconds = milliseconds * 10 + (c - '0');
    retry_ = std::chrono::milliseconds(milliseconds);
  }
}

void SseParser::Dispatch(const OnEvent& on_event) {
  last_id_ = id_;
  std::string type = std::exchange(type_, {});
  std::string data = std::exchange(data_, {});
  const bool any = std::exchange(has_data_, false);
  // In the standard every line of data leaves a newline in the buffer, so a block with one empty
  // line of data is an event, and only one without any is dropped.
  if (!any) return;
  on_event({.id = last_id_,
            .type = type.empty() ? "message" : AsUtf8(std::move(type)),
            .data = AsUtf8(std::move(data))});
}

}  // namespace muster::net

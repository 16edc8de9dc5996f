#include "profile/logs/log_cursor.h"

#include <algorithm>
#include <utility>

namespace muster::profile {
namespace {

constexpr std::uint64_t kLookBack = 64 << 10;

/// Whether a line ends with the character at `i`; the one behind it decides for a CR.
bool EndsAt(std::string_view text, std::size_t i) {
  if (text[i] == '\n') return true;
  return text[i] == '\r' && i + 1 < text.size() && text[i + 1] != '\n';
}

}  // namespace

std::string_view WithoutEnd(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

LogCursor::LogCursor(const RunFiles& files, const LogName& name, Bytes chunk)
    : files_(&files),
      name_(name),
      path_(name.log_path()),
      chunk_(chunk),
      times_(files, name.index_path()) {}

std::size_t LogCursor::PieceLength(bool to_end) const {
  const std::string_view text = held();
  const std::string_view window = text.substr(0, kMaxLogPiece);
  const std::size_t line = std::min(window.find('\n'), window.size());
  const std::size_t end = std::min(window.substr(0, line).find('\r'), line);
  if (end >= kMaxLogPiece) return kMaxLogPiece;
  if (end == text.size()) return to_end ? end : 0;
  if (text[end] == '\n') return end + 1;
  if (end + 1 == text.size()) return to_end ? end + 1 : 0;  // whether LF follows is not known
  return text[end + 1] == '\n' ? end + 2 : end + 1;
}

/// Reads a chunk; false at the end.
bool LogCursor::Fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::uint64_t at = offset_ + buffer_.size();
  const std::uint64_t room = at < limit_ ? limit_ - at : 0;
  const auto most = std::min(room, static_cast<std::uint64_t>(chunk_.count));
  if (most == 0) return false;
  auto bytes = files_->ReadAt(path_, at, Bytes{static_cast<std::int64_t>(most)});
  if (!bytes || bytes->empty()) return false;
  buffer_ += *bytes;
  // The keeper writes a mark in front of its bytes, so those of these bytes are there.
  times_.LoadTo(offset_ + buffer_.size());
  return true;
}

bool LogCursor::Measure(bool to_end) {
  front_ = PieceLength(false);
  while (front_ == 0 && Fill()) front_ = PieceLength(false);
  if (front_ == 0) front_ = PieceLength(to_end);
  if (front_ > 0) return true;
  std::string().swap(buffer_);  // it is read again when it has gone on
  begin_ = 0;
  return false;
}

std::optional<LogPiece> LogCursor::Front(bool to_end) {
  while (skipping_) {
    if (!Measure(to_end)) return std::nullopt;
    Pop();
    skipping_ = inside_;
  }
  if (!Measure(to_end)) return std::nullopt;
  const std::string_view text = held().substr(0, front_);
  if (!inside_) line_time_ = times_.At(offset_);
  const bool whole = WithoutEnd(text).size() < text.size();
  const bool last = to_end && front_ < kMaxLogPiece;
  return LogPiece{
      .name = name_, .t_ns = line_time_, .text = text, .begins = !inside_, .ends = whole || last};
}

void LogCursor::Pop() {
  const std::string_view text = held().substr(0, front_);
  inside_ = WithoutEnd(text).size() == text.size();
  begin_ += front_;
  offset_ += front_;
  front_ = 0;
  if (begin_ < buffer_.size()) return;
  std::string().swap(buffer_);
  begin_ = 0;
}

std::int64_t LogCursor::NextTime() {
  if (inside_) return line_time_.value_or(-1);
  if (!std::exchange(primed_, true)) times_.LoadTo(offset_ + 1);
  return times_.At(offset_).value_or(-1);
}

void LogCursor::SeekLine(std::uint64_t offset) {
  offset_ = offset;
  std::string().swap(buffer_);
  begin_ = 0;
  front_ = 0;
  inside_ = false;
  primed_ = false;
  times_.SeekOffset(offset);
}

void LogCursor::SeekTime(std::int64_t t_ns) {
  if (!times_.exists()) return;
  const auto mark = times_.SeekTime(t_ns);
  const auto sight = files_->Look(path_);
  const std::uint64_t size = sight ? sight->size : 0;
  const std::uint64_t target = mark ? std::min(mark->offset, size) : size;
  SeekLine(target);
  if (target == 0) return;
  // From inside a line, or inside of CR LF, on to the next one.
  const auto around = files_->ReadAt(path_, target - 1, Bytes{2});
  if (!around || around->empty() || EndsAt(*around, 0)) return;
  if (*around == "\r\n") {
    return SeekLine(target + 1);
  }
  skipping_ = inside_ = true;
  [[maybe_unused]] const auto next = Front(false);  // reads over the rest of that line
}

/// Goes backwards over the line ends: behind each of them but the last a line begins.
LogCursor::LastLines LogCursor::FindLast(std::uint64_t most, bool to_end) const {
  const auto sight = files_->Look(path_);
  const std::uint64_t end = sight ? std::min(sight->size, limit_) : 0;
  if (skipping_ || end <= offset_) return {.offset = offset_};
  LastLines found{.offset = end};
  bool open = false;   // the line looked at is unfinished and does not count
  char behind = '\0';  // the character behind the one looked at
  for (std::uint64_t at = end; at > offset_;) {
    const std::uint64_t begin = std::max(offset_, at - std::min(at, kLookBack));
    const auto bytes = files_->ReadAt(path_, begin, Bytes{static_cast<std::int64_t>(at - begin)});
    if (!bytes || bytes->size() < at - begin) return found;
    for (std::uint64_t place = at; place-- > begin;) {
      const char c = (*bytes)[place - begin];
      const bool ends = c == '\n' || (c == '\r' && place + 1 < end && behind != '\n');
      behind = c;
      if (place + 1 == end) {
        open = !to_end && !ends;
        if (most == 0 && !open) return found;
        continue;
      }
      if (!ends) continue;
      found.offset = place + 1;
      if (!std::exchange(open, false)) ++found.lines;
      if (found.lines == most) return found;
    }
    at = begin;
  }
  found.offset = offset_;
  if (!open) ++found.lines;
  return found;
}

std::uint64_t LogCursor::SeekLast(std::uint64_t most, bool to_end) {
  const LastLines found = FindLast(most, to_end);
  if (!skipping_) SeekLine(found.offset);
  return found.lines;
}

}  // namespace muster::profile

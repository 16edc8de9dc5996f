#pragma once
// Cuts a byte stream into lines, for the console and for log rules: at LF, CR and CR LF, and after
// 64 KiB without one. Bytes are kept as they are: NUL and invalid UTF-8 pass. Pure; one stream, one
// framer.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::agent {

struct Line {
  std::string text;        ///< without its end
  bool continued = false;  ///< goes on from the line before, which was cut
  bool operator==(const Line&) const = default;
};

class LineFramer {
 public:
  /// Longer lines come in pieces of this many bytes.
  static constexpr std::size_t kMaxLine = std::size_t{64} << 10;

  /// The lines that `bytes` completes. Any size; what is held in between is at most kMaxLine.
  std::vector<Line> Add(std::string_view bytes);
  /// The same without copies: `take(std::string_view text, bool continued)` for each line.
  template <typename Take>
  void Feed(std::string_view bytes, Take take) {
    while (!bytes.empty()) {
      if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
      const std::size_t room = kMaxLine - held_.size();
      const std::size_t end = EndOfLine(bytes.substr(0, room + 1));
      const std::size_t length = std::min(end, room);
      const bool whole = length < bytes.size();
      if (!whole || !held_.empty()) held_.append(bytes.substr(0, length));
      if (!whole) return;
      take(held_.empty() ? bytes.substr(0, length) : std::string_view(held_), continued_);
      held_.clear();
      continued_ = length < end;
      bytes.remove_prefix(length);
      if (continued_) continue;
      after_cr_ = bytes.front() == '\r';
      bytes.remove_prefix(1);
    }
  }
  /// What is left when the stream ends.
  std::vector<Line> Finish();
  /// Bytes were lost: what is held and what follows do not belong together.
  void Break();

 private:
  /// Where the first CR or LF is, or the size.
  static std::size_t EndOfLine(std::string_view bytes);

  std::string held_;
  bool continued_ = false;
  bool after_cr_ = false;
};

}  // namespace muster::agent

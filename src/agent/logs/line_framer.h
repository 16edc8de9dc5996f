#pragma once
// Cuts a byte stream into lines for the console: at LF, CR and CR LF, and after 64 KiB without one.
// Bytes are kept as they are: NUL and invalid UTF-8 pass. Pure; one stream, one framer.

#include <cstddef>
#include <string>
#include <string_view>
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
  /// What is left when the stream ends.
  std::vector<Line> Finish();
  /// Bytes were lost: what is held and what follows do not belong together.
  void Break();

 private:
  void Emit(std::vector<Line>& lines, bool cut);

  std::string held_;
  bool continued_ = false;
  bool after_cr_ = false;
};

}  // namespace muster::agent

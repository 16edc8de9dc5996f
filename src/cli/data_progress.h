#pragma once
// A progress line on stderr: done, rate, time to go; redrawn ten times a second on a terminal,
// silent elsewhere. The clock and the terminal come in, so a test can look at what is drawn. One
// thread.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster::cli {

class ProgressLine {
 public:
  struct Options {
    std::string unit = "images";  ///< empty: bytes are counted
    bool enabled = false;
    std::function<void(std::string_view)> draw;  ///< gets the bytes for the terminal
  };
  ProgressLine(const Clock& clock, Options options);
  /// Clears the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Update(std::uint64_t done, std::uint64_t all, std::uint64_t bytes);

 private:
  const Clock& clock_;
  Options options_;
  Instant started_;
  Instant drawn_{};
  bool visible_ = false;
};

/// For stderr, enabled when that is a terminal.
ProgressLine::Options StderrProgress();

}  // namespace muster::cli

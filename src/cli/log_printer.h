#pragma once
// The lines of `muster logs` as they are shown: as they were written, behind their rank and time,
// safe for a terminal, or as the one document of --json. Gathers text; whoever prints takes it.
// One thread.

#include <chrono>
#include <optional>
#include <string>

#include "profile/logs/log_cursor.h"

namespace muster::cli {

struct LogLook {
  bool json = false;
  bool prefix = true;     ///< "[rank gen] "
  bool times = false;     ///< wall times in front
  bool terminal = false;  ///< nothing of a line may drive it
  /// From CLOCK_MONOTONIC of the run's host to the wall clock; nothing: not known.
  std::optional<std::chrono::nanoseconds> to_wall;
  std::string run;  ///< the folder, for --json
};

class LogPrinter {
 public:
  explicit LogPrinter(LogLook look) : look_(std::move(look)) {}

  void Begin();
  void Add(const profile::LogPiece& piece);
  /// Behind everything: what a line or the document still needs.
  void End();

  const std::string& text() const { return text_; }
  void Clear() { text_.clear(); }

 private:
  void AddJson(const profile::LogPiece& piece);
  std::string Utc(const profile::LogPiece& piece) const;

  LogLook look_;
  std::string text_;
  std::optional<profile::LogName> open_;  ///< whose line was left without its end
  bool any_ = false;
};

}  // namespace muster::cli

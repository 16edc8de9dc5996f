#pragma once
// The time stamp that a line of somebody's log begins with: ISO 8601 with T or a blank
// ("2026-11-29T21:38:14.123Z", "2026-11-29 21:38:14,123", an offset as +02:00; without one UTC is
// taken), a time of day ("21:38:14"), or seconds since 1970 ("1764452294.5"); also behind "[" or
// "(". Pure.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace muster::agent::rules {

enum class LineTimeKind { kInstant, kTimeOfDay };

struct LineTime {
  LineTimeKind kind = LineTimeKind::kInstant;
  std::chrono::nanoseconds time{};  ///< since 1970, or since midnight
};

std::optional<LineTime> ReadLineTime(std::string_view line);

/// The stamps of one log as times that never go back: a line without one has that of the line
/// before, midnight passes, and a step back (two writers) counts as no step.
class LineClock {
 public:
  /// Nothing before the first stamp.
  std::optional<std::chrono::nanoseconds> Next(std::string_view line);
  std::optional<LineTimeKind> kind() const { return kind_; }

 private:
  std::optional<LineTimeKind> kind_;
  std::chrono::nanoseconds days_{};
  std::optional<std::chrono::nanoseconds> last_;
};

}  // namespace muster::agent::rules

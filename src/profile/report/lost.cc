#include "profile/report/lost.h"

#include <fmt/format.h>

#include "profile/report/text.h"

namespace muster::profile {

void LostSeconds::Add(const LostSeconds& other) {
  detect += other.detect;
  stop += other.stop;
  start += other.start;
  replay += other.replay;
  unknown += other.unknown;
}

std::string LostInWords(const LostSeconds& lost) {
  if (lost.exact()) return FormatSeconds(lost.total());
  return fmt::format("between {} and {}", FormatSeconds(lost.recovery()),
                     FormatSeconds(lost.at_most()));
}

std::string LostInParts(const LostSeconds& lost) {
  const std::string stages =
      fmt::format("{} (detect {}, stop {}, start {})", FormatSeconds(lost.recovery()),
                  FormatSeconds(lost.detect), FormatSeconds(lost.stop), FormatSeconds(lost.start));
  if (lost.exact()) {
    return fmt::format("recovery {}, replay {}", stages, FormatSeconds(lost.replay));
  }
  // Of a fault that ended the run no process was started again.
  return fmt::format("{} {}, and what of {} of work was not saved",
                     lost.start > 0 ? "processes started after" : "down", stages,
                     FormatSeconds(lost.unknown));
}

}  // namespace muster::profile

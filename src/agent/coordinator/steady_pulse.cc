#include "agent/coordinator/steady_pulse.h"

#include <chrono>

namespace muster::agent {
namespace {

// Half of what lies between two looks.
constexpr std::chrono::nanoseconds kGuess = std::chrono::milliseconds(50);

}  // namespace

os::Pulse Steadied(os::Pulse pulse, const os::Pulse& known) {
  const bool same = pulse.generation == known.generation && pulse.phase == known.phase &&
                    pulse.step == known.step && pulse.collective == known.collective;
  if (same && std::chrono::abs(pulse.phase_since - known.phase_since) < kGuess) {
    pulse.phase_since = known.phase_since;
  }
  return pulse;
}

}  // namespace muster::agent

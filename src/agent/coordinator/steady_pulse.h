#pragma once
// A pulse of another host, on our clock, says when its phase began by a guess of the other clock
// that becomes better now and then, and drifts: the same moment then looks a little different. Who
// takes any difference for a sign of life never finds a hang whose limit is long. Pure.

#include "os/heartbeat.h"

namespace muster::agent {

/// `pulse`, with the begin of its phase as in `known` where both mean the same. A rank that works
/// is further by the time between two looks, which is more than a guess is off.
os::Pulse Steadied(os::Pulse pulse, const os::Pulse& known);

}  // namespace muster::agent

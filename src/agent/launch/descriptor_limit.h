#pragma once
// How many descriptors this process may have.

#include <cstdint>

namespace muster::agent {

/// Raises the soft limit to the hard one: a rank costs some eight, its page, two pipes, two logs,
/// its steps, its link. The value is the limit that workers are to find; 0: ours was not changed.
std::uint64_t RaiseDescriptorLimit();

}  // namespace muster::agent

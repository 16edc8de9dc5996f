#pragma once
// What the kernel's log holds since boot, as one check of the doctor: the score that its troubles
// leave today, and the worst of them by name.

#include <span>
#include <string>

#include "agent/health/check.h"
#include "agent/health/kernel_log.h"

namespace muster::agent::health {

/// Pure. `missed` records were overwritten.
Check JudgeKernelLog(std::span<const ToldTrouble> troubles, std::uint64_t missed, Instant now);
/// "xid 79 on PCI:0000:3b:00 (GPU has left the bus), pid 71"
std::string Describe(const Trouble& trouble);

Check CheckKernelLog(const std::string& path);

}  // namespace muster::agent::health

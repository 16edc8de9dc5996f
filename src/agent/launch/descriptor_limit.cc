#include "agent/launch/descriptor_limit.h"

#include <sys/resource.h>

namespace muster::agent {

std::uint64_t RaiseDescriptorLimit() {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return 0;
  const struct rlimit raised{limit.rlim_max, limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) < 0 ? 0 : limit.rlim_cur;
}

}  // namespace muster::agent

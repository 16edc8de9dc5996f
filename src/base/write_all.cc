#include "base/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace muster {

Written WriteAll(int fd, ByteSpan data) {
  Written written;
  while (written.bytes < data.size()) {
    const auto n = ::write(fd, data.data() + written.bytes, data.size() - written.bytes);
    if (n < 0 && errno == EINTR) continue;
    // Nothing taken and nothing wrong would go on for ever.
    if (n <= 0) return {written.bytes, n < 0 ? errno : EIO};
    written.bytes += static_cast<std::size_t>(n);
  }
  return written;
}

}  // namespace muster

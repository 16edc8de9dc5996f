#include "base/fd.h"

#include <unistd.h>

namespace muster {

void Fd::Reset(int fd) {
  // EINTR included: Linux has released the descriptor by then, and a second close could hit
  // somebody else's.
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

}  // namespace muster

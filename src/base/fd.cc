#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace muster {

void Fd::Reset(int fd) {
  // EINTR included: Linux has released the descriptor by then, and a second close could hit
  // somebody else's.
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

void KeepStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is this one: those below are open.
    [[maybe_unused]] const int opened = ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

void FailAtFileSizeLimit() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace muster

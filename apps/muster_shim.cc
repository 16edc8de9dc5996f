// muster-shim CONTROL_FD RUN_ID ORPHAN_GRACE_MS SOFT_NOFILE: started by `muster run`, never by
// hand.
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "agent/shim/shim.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // workers get it back
  muster::agent::shim::ShimOptions options;
  int type = 0;
  socklen_t size = sizeof(type);
  if (argc == 5) options.control_fd = std::atoi(argv[1]);
  if (argc != 5 || ::getsockopt(options.control_fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
      type != SOCK_SEQPACKET) {
    constexpr char kText[] = "muster-shim: started by 'muster run'; it has no use by hand\n";
    [[maybe_unused]] const auto written = ::write(2, kText, sizeof(kText) - 1);
    return 2;
  }
  options.id = argv[2];
  options.orphan_grace_ns = std::atoll(argv[3]) * 1'000'000;
  options.soft_nofile = std::strtoull(argv[4], nullptr, 10);
  static muster::agent::shim::Shim shim;  // too large for the stack, and never destroyed
  return shim.Run(options);
}

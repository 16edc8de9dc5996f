#pragma once
// Signals as data: blocked while a SignalFd lives and read from its descriptor by the event loop,
// so that none of them needs a handler. Make it before the first thread, because every thread has
// a mask of its own and inherits its maker's. Single owner thread.

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace muster::os {

struct Signal {
  int number = 0;
  pid_t sender = 0;  ///< 0: the kernel, such as a terminal's Ctrl-C
  uid_t sender_uid = 0;
};

class SignalFd {
 public:
  /// Blocks `signals` in the calling thread. The destructor restores the mask; what is pending by
  /// then is delivered the usual way.
  static Result<SignalFd> Block(std::span<const int> signals);
  SignalFd(SignalFd&&) noexcept;
  SignalFd& operator=(SignalFd&&) = delete;
  ~SignalFd();

  /// The mask stays as it is when this object goes: for a program that is about to end and must not
  /// be killed by a signal that it has no answer to any more.
  void StayBlocked() { restore_ = false; }

  int fd() const { return fd_.get(); }  ///< readable when a signal waits
  /// The next signal, or nothing when none waits. Equal signals that come before a read are one.
  Result<std::optional<Signal>> Read();

 private:
  SignalFd(Fd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}
  Fd fd_;
  sigset_t before_;
  bool restore_ = true;
};

/// What ends a program: INT, TERM, QUIT, and HUP where it is not ignored, as for who was started by
/// nohup.
std::vector<int> EndingSignals();

/// "SIGKILL", "SIGRTMIN+3", "signal 99".
std::string SignalName(int number);

}  // namespace muster::os

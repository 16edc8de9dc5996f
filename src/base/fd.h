#pragma once
// Fd owns one file descriptor and closes it. Every descriptor we open is CLOEXEC; a child gets what
// it needs by name.

#include <utility>

namespace muster {

class [[nodiscard]] Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Call first in main: descriptors 0 to 2 that the parent closed are taken, so that no file of ours
/// gets one of these numbers and what is meant for the user ends in it. Reading from the first and
/// writing to the others still fails, as it does when they are closed.
void KeepStandardDescriptors();

/// Call in main: a write beyond the limit of file sizes (ulimit -f) fails with EFBIG, as one on a
/// full disk does, instead of ending the process by SIGXFSZ. Who executes other programs gives the
/// signal back to them (os::ResetSignals).
void FailAtFileSizeLimit();

}  // namespace muster

#pragma once
// Frames of threads that were copied (held.h): libdw (elfutils) unwinds by .eh_frame and names
// functions, with file and line where a program has debug information. Processes that have the same
// libraries at the same addresses, as copies of one fork server do, share what was looked up.
//
// elfutils is dual licensed (LGPLv3+ or GPLv2+) and linked dynamically; nothing of it is seen from
// outside. One thread.

#include <memory>
#include <vector>

#include "agent/stacks/stacks.h"
#include "agent/stacks/take/held.h"

namespace muster::agent::stacks {

class Layout;

class Unwinder {
 public:
  Unwinder();
  ~Unwinder();
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  /// One entry a thread of `process`, in their order. Behind the deadline nothing is looked up any
  /// more, and `missing` says so.
  std::vector<Thread> FramesOf(const HeldProcess& process, Instant deadline);

 private:
  std::vector<std::unique_ptr<Layout>> layouts_;
};

}  // namespace muster::agent::stacks

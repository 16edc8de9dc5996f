#pragma once
// The one loop around write(2): whole, however often a signal cuts in. Any thread; the descriptor
// is the caller's, blocking.

#include "base/bytes.h"

namespace muster {

struct Written {
  std::size_t bytes = 0;  ///< how far it came
  int error = 0;          ///< errno of the write that failed; 0: all of it is written
};

Written WriteAll(int fd, ByteSpan data);

}  // namespace muster

#pragma once
// The whole terminal for a while: its other screen, without a cursor and without echo, put back as
// it was by the destructor. Frames are text that drives nothing; only this file writes terminal
// sequences. One thread.

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

#include "cli/live.h"

namespace muster::cli {

class Screen {
 public:
  explicit Screen(Live& live) : live_(live) {}
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() { Leave(); }

  void Enter();
  /// Everything as it was; without effect when it is so already.
  void Leave();
  struct Size {
    std::size_t columns = 80;
    std::size_t rows = 24;
  };
  Size size() const;
  /// Draws `lines`, no more and no wider than size(). False as Live::Write has it.
  bool Draw(const std::vector<std::string>& lines);
  /// What was typed, taken; '\0': nothing.
  char TakeKey();

 private:
  Live& live_;
  bool entered_ = false;
  bool typing_ = false;  ///< stdin is a terminal whose settings were changed
  termios before_{};
};

}  // namespace muster::cli

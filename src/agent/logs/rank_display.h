#pragma once
// How a rank's lines look on the console. A value.

#include <string>

namespace muster::agent {

struct RankDisplay {
  bool out = true;     ///< stdout is shown
  bool err = true;     ///< stderr is shown
  std::string prefix;  ///< before each line; empty: "[RANK GENERATION] "
};

}  // namespace muster::agent

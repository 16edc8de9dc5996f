#pragma once
// Which log: one file, and the pipe that it comes from.

#include <compare>
#include <string_view>

#include "base/strong_id.h"

namespace muster::agent {

enum class Stream { kOut, kErr };
std::string_view NameOf(Stream stream);  ///< "stdout", "stderr"

struct LogId {
  Rank rank;
  Generation generation;  ///< in which its process was started
  Stream stream = Stream::kOut;
  auto operator<=>(const LogId&) const = default;
};

}  // namespace muster::agent

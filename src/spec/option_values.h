#pragma once
// What the value of an option must be, refused in our own words: "--format takes auto, idx or
// images, not 'png'". Part of the library `command_line`. One thread, while options are declared.

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class Option;
}

namespace muster::spec {

/// Any of `words`, as it is written here. At least two.
void TakeOneOf(CLI::Option& option, const std::vector<std::string>& words);

struct WholeRange {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};

/// A whole number, the ends included.
void TakeWithin(CLI::Option& option, WholeRange range);

}  // namespace muster::spec

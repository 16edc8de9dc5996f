#pragma once
// Whether two exceptions are the same one: a program that fails twice in the same way often says so
// with another address, count or time. Numbers do not count; names with digits (float32, conv2d)
// do, for they tell failures apart. Pure.

#include <string>
#include <string_view>

namespace muster::agent {

/// Each number as "#": decimal ("12", "1.5e-07", "2.13.0", "1h20m" is "#h#m"), hexadecimal with 0x,
/// and words of six hexadecimal digits or more with one below a among them.
std::string WithoutNumbers(std::string_view text);

bool SameWords(std::string_view one, std::string_view other);

}  // namespace muster::agent

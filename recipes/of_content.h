#pragma once
// Whose fault an Invalid is: on a command line it stands for what was typed and ends a program with
// 2; behind that, for what a file holds, which no other flag would mend.

#include <utility>

#include "base/result.h"

namespace muster::recipes {

/// Invalid becomes Precondition, which ends a program with 1; everything else stays.
template <typename T>
Result<T> OfContent(Result<T> result) {
  if (result || result.error().code() != Code::kInvalid) return result;
  return Error(Code::kPrecondition, result.error().message(), result.error().hint());
}

}  // namespace muster::recipes

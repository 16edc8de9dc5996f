#pragma once
// Result<T> is a T or an Error; Status is success or an Error. Functions that can fail return one
// of them and nothing throws across a file. MUSTER_TRY unwraps: `const Plan plan =
// MUSTER_TRY(MakePlan(state));` returns the error to our caller.

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "base/error.h"

namespace muster {

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  /// Implicit, so that `return Error{…};` reads well.
  Result(Error error)  // NOLINT(google-explicit-constructor)
      : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}
};

using Status = Result<void>;

inline Status Ok() { return Status{}; }

/// Adds the place to a failed result: `return Within("read manifest", ReadAll(path));`
template <typename T>
Result<T> Within(std::string_view context, Result<T> result) {
  if (!result) return std::move(result.error()).Within(context);
  return result;
}

/// Where a file's content is read by what also reads words: Invalid becomes `code`, every other
/// error stays (error.h has the rule).
template <typename T>
Result<T> OfContent(Result<T> result, Code code = Code::kPrecondition) {
  if (result || result.error().code() != Code::kInvalid) return result;
  return Error(code, result.error().message(), result.error().hint());
}

/// The value of a successful result, moved out; for MUSTER_TRY.
template <typename T>
T TakeValue(Result<T>&& result) {
  return std::move(*result);
}
inline void TakeValue(Result<void>&&) {}

}  // namespace muster

/// The value of a Result, or return its error from the enclosing function. A statement expression:
/// clang and gcc have it. Never inside a new-expression: the memory is taken first, and the return
/// would leave it behind.
#define MUSTER_TRY(expression) MUSTER_TRY_NAMED(expression, __COUNTER__)
#define MUSTER_TRY_NAMED(expression, number) MUSTER_TRY_PASTE(expression, number)
#define MUSTER_TRY_PASTE(expression, number) MUSTER_TRY_AS(expression, muster_result_##number)
#define MUSTER_TRY_AS(expression, name)                \
  __extension__({                                      \
    auto&& name = (expression);                        \
    if (!name.has_value()) [[unlikely]]                \
      return ::muster::Error(std::move(name).error()); \
    ::muster::TakeValue(std::move(name));              \
  })

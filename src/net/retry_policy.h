#pragma once
// Whether and when a failed call is tried again: exponential back-off with full jitter between half
// and all of the step, a bound on attempts and on the whole time, and the server's Retry-After
// where it gave one. A call that is not idempotent is tried again only when it surely did nothing.
// Pure.

#include <chrono>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/rng.h"

namespace muster::net {

struct RetryOptions {
  unsigned attempts = 1;  ///< at most, the first included; 1 means never again
  std::chrono::nanoseconds first = std::chrono::milliseconds(100);
  std::chrono::nanoseconds most = std::chrono::seconds(10);  ///< of one wait
  std::chrono::nanoseconds total = std::chrono::minutes(1);  ///< from the first start to the last
  bool idempotent = false;  ///< twice does the same as once; GET, HEAD, PUT and DELETE always are
};

/// How the last attempt ended. Either `status` of an answer that came, or `code` where none came.
struct Attempt {
  unsigned number = 1;  ///< of this attempt, from 1
  std::chrono::nanoseconds elapsed{0};
  int status = 0;
  Code code = Code::kUnavailable;
  bool sent = true;  ///< some of the request may have reached the server
  std::optional<std::chrono::seconds> retry_after;
};

struct RetryDecision {
  bool again = false;
  std::chrono::nanoseconds wait{0};
  std::string_view why;  ///< for logs; a constant
};

RetryDecision DecideRetry(const RetryOptions& options, const Attempt& attempt, Rng& random);

}  // namespace muster::net

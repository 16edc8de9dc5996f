#include "net/retry_policy.h"

#include <algorithm>

namespace muster::net {
namespace {

using std::chrono::nanoseconds;

/// What may be gone the next time.
bool IsPassing(const Attempt& attempt) {
  if (attempt.status == 0) return TraitsOf(attempt.code).retryable;
  return attempt.status == 408 || attempt.status == 429 || attempt.status == 502 ||
         attempt.status == 503 || attempt.status == 504;
}

/// The server said itself that it did not do it.
bool SurelyUndone(const Attempt& attempt) {
  if (attempt.status == 0) return !attempt.sent;
  return attempt.status == 429 || attempt.status == 503;
}

nanoseconds StepOf(const RetryOptions& options, unsigned number) {
  nanoseconds step = options.first;
  for (unsigned i = 1; i < number && step < options.most; ++i) step *= 2;
  return std::min(step, options.most);
}

}  // namespace

RetryDecision DecideRetry(const RetryOptions& options, const Attempt& attempt, Rng& random) {
  if (!IsPassing(attempt)) return {.why = "trying again would not help"};
  if (attempt.number >= options.attempts) return {.why = "all attempts are used up"};
  if (!options.idempotent && !SurelyUndone(attempt)) {
    return {.why = "it may have been done already"};
  }
  const nanoseconds step = StepOf(options, attempt.number);
  nanoseconds wait(static_cast<nanoseconds::rep>(static_cast<double>(step.count()) *
                                                 (0.5 + 0.5 * random.Uniform())));
  if (attempt.retry_after) wait = std::max<nanoseconds>(wait, *attempt.retry_after);
  if (wait > options.total || attempt.elapsed > options.total - wait) {
    return {.why = "the time for all attempts is used up"};
  }
  return {.again = true, .wait = wait, .why = "it may work the next time"};
}

}  // namespace muster::net

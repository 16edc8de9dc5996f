#pragma once
// Ctrl-C for a verb that has something to clear away: while an object lives, the first SIGINT or
// SIGTERM asks for a stop, a second one ends the process at once. Signals that are ignored, as
// under nohup, stay so. Make it before the first other thread, whose masks it sets; one owner
// thread.

#include <atomic>
#include <memory>
#include <stop_token>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "os/signals.h"

namespace muster::cli {

/// Blocked, an ignored signal would arrive after all.
bool IsIgnored(int number);

class StopOnSignal {
 public:
  static Result<std::unique_ptr<StopOnSignal>> Begin();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal();

  std::stop_token token() const { return source_.get_token(); }
  /// The signal that came, 0 while none did.
  int number() const { return number_; }

 private:
  StopOnSignal(os::SignalFd signals, Fd wake)
      : signals_(std::move(signals)), wake_(std::move(wake)) {}
  void Watch(const std::stop_token& end);
  void TakeSignals();

  os::SignalFd signals_;
  Fd wake_;  ///< ends the thread
  std::stop_source source_;
  std::atomic<int> number_ = 0;
  std::jthread thread_;
};

}  // namespace muster::cli

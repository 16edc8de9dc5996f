#pragma once
// A verb that shows what happens as it happens: waits and writes to stdout until a signal comes,
// nobody reads any more, or its own end. While an object lives its signals are data: SIGINT,
// SIGTERM, SIGHUP and SIGQUIT end a wait or a write, however long it would take; those that are
// ignored, as under nohup, stay so. One thread.

#include <chrono>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "os/signals.h"

namespace muster::cli {

struct LiveOptions {
  bool input = false;     ///< what is typed ends a wait
  bool terminal = false;  ///< a resize and Ctrl-Z do too
};

class Live {
 public:
  enum class Woke {
    kTime,     ///< the time is up
    kInput,    ///< something was typed
    kResized,  ///< the terminal has another size
    kSuspend,  ///< Ctrl-Z: the caller puts the terminal in order, then calls Suspend
    kStop,     ///< a signal came, or nobody reads stdout: the verb ends with exit_code()
  };
  static Result<Live> Begin(const LiveOptions& options);

  /// Whether a signal that ends the verb came meanwhile.
  bool Stopped() { return TakeSignal() == Woke::kStop; }
  Woke Wait(std::chrono::nanoseconds limit);
  /// All of it; false: end with exit_code().
  bool Write(std::string_view text);
  /// Stops this process as Ctrl-Z does, and returns when it goes on.
  void Suspend();
  /// 128 + the signal, or 0 when nobody reads any more.
  int exit_code() const { return signal_ == 0 ? 0 : 128 + signal_; }

 private:
  Live(os::SignalFd signals, const LiveOptions& options)
      : signals_(std::move(signals)), options_(options) {}
  std::optional<Woke> TakeSignal();

  os::SignalFd signals_;
  LiveOptions options_;
  int signal_ = 0;
};

}  // namespace muster::cli

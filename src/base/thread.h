#pragma once
// Threads that start or say why not: std::jthread throws when the system gives none (a limit of
// processes, no room for a stack), these return Exhausted with a hint and leave nothing running.
// Every thread of Muster is made here, or catches std::system_error itself. Call from the owner.

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"

namespace muster {

/// More threads than this are a slip of the pen: no option takes them.
inline constexpr std::size_t kMostThreads = 1024;

/// Names the calling thread for ps, top and debuggers; the kernel keeps 15 bytes.
void NameThisThread(std::string_view name);

/// A thread that is named and runs `body`.
Result<std::jthread> StartThread(std::string name,
                                 std::function<void(const std::stop_token&)> body);

struct CrewOptions {
  std::string name = "worker";  ///< threads are "name-0", "name-1", …
  std::size_t threads = 1;      ///< at most kMostThreads, else Invalid
  std::function<void(std::size_t number, const std::stop_token& stop)> body;
  /// Makes bodies end that wait for something else than their token; may be empty.
  std::function<void()> stop;
};

/// All of the threads, or none: when one cannot be started, those before it are stopped and joined.
Result<std::vector<std::jthread>> StartCrew(const CrewOptions& options);

}  // namespace muster

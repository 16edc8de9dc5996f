#include "base/thread.h"

#include <fmt/format.h>
#include <pthread.h>

#include <system_error>
#include <utility>

namespace muster {

void NameThisThread(std::string_view name) {
  ::pthread_setname_np(::pthread_self(), std::string(name.substr(0, 15)).c_str());
}

Result<std::jthread> StartThread(std::string name,
                                 std::function<void(const std::stop_token&)> body) {
  try {
    return std::jthread(
        [name = std::move(name), body = std::move(body)](const std::stop_token& stop) {
          NameThisThread(name);
          body(stop);
        });
  } catch (const std::system_error& error) {
    return Error(Code::kExhausted, ErrnoError("start a thread", error.code().value()).message(),
                 "ask for fewer threads, or raise the limit of processes (ulimit -u, pids.max)");
  }
}

Result<std::vector<std::jthread>> StartCrew(const CrewOptions& options) {
  if (options.threads > kMostThreads) {
    return Error(Code::kInvalid,
                 fmt::format("{} threads, at most {} are taken", options.threads, kMostThreads));
  }
  std::vector<std::jthread> threads;
  for (std::size_t number = 0; number < options.threads; ++number) {
    auto started = StartThread(
        fmt::format("{}-{}", options.name, number),
        [body = options.body, number](const std::stop_token& stop) { body(number, stop); });
    if (!started) {
      for (std::jthread& thread : threads) thread.request_stop();
      if (options.stop) options.stop();
      threads.clear();
      return std::move(started.error())
          .Within(fmt::format("{} of {} threads", number, options.threads));
    }
    threads.push_back(*std::move(started));
  }
  return threads;
}

}  // namespace muster

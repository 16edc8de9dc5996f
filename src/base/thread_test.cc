#include "base/thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "base/no_threads_test.h"
#include "base/worker_pool.h"

namespace muster {
namespace {

TEST(StartThread, SaysWhyWhenTheSystemGivesNone) {
  const NoThreads limit;
  const auto thread = StartThread("late", [](const std::stop_token&) {});
  ASSERT_FALSE(thread);
  EXPECT_EQ(thread.error().code(), Code::kExhausted);
  EXPECT_NE(thread.error().hint().find("fewer threads"), std::string::npos);
}

TEST(StartCrew, NumbersItsThreads) {
  std::atomic<std::size_t> sum = 0;
  {
    const auto crew = StartCrew(
        {.threads = 4, .body = [&](std::size_t number, const std::stop_token&) { sum += number; }});
    ASSERT_TRUE(crew);
    EXPECT_EQ(crew->size(), 4u);
  }
  EXPECT_EQ(sum, 6u);
}

TEST(StartCrew, TakesNoAbsurdNumber) {
  EXPECT_EQ(StartCrew({.threads = 100'000}).error().code(), Code::kInvalid);
}

TEST(StartCrew, StopsAndJoinsThoseThatRunWhenALaterOneCannotBeStarted) {
  // The first thread sees to it that no further one starts; the others wait for the order to stop.
  std::atomic<int> running = 0;
  std::atomic<int> stopped = 0;
  std::optional<NoThreads> limit;
  std::atomic<bool> stop = false;
  const auto crew = StartCrew({.threads = kMostThreads,
                               .body =
                                   [&](std::size_t number, const std::stop_token&) {
                                     ++running;
                                     if (number == 0) limit.emplace();
                                     stop.wait(false);
                                     ++stopped;
                                   },
                               .stop =
                                   [&] {
                                     stop = true;
                                     stop.notify_all();
                                   }});
  if (crew) {
    stop = true;
    stop.notify_all();
    GTEST_SKIP() << "all threads were started before the first of them ran";
  }
  EXPECT_EQ(running, stopped);
  EXPECT_NE(crew.error().message().find("of 1024 threads: start a thread"), std::string::npos);
}

TEST(WorkerPool, SaysThatItsThreadsCannotBeStarted) {
  const NoThreads limit;
  EXPECT_FALSE(WorkerPool::Start({.threads = 3}));
}

}  // namespace
}  // namespace muster

#include "base/worker_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <latch>
#include <mutex>
#include <set>

namespace muster {
namespace {

TEST(WorkerPool, FinishesAllThatWasSubmitted) {
  std::atomic<int> sum = 0;
  const auto made = WorkerPool::Start({.threads = 3, .queued = 2});
  ASSERT_TRUE(made);
  WorkerPool& pool = **made;
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(pool.Submit([&sum, i](const std::stop_token&) { sum += i; }));
  }
  pool.Finish();
  EXPECT_EQ(sum, 5050);
  EXPECT_EQ(pool.Submit([](const std::stop_token&) {}).error().code(), Code::kCancelled);
  pool.Finish();  // again is fine
}

TEST(WorkerPool, NamesItsThreads) {
  std::mutex mutex;
  std::set<std::string> names;
  const auto made = WorkerPool::Start({.name = "decode", .threads = 1});
  ASSERT_TRUE(made);
  WorkerPool& pool = **made;
  ASSERT_TRUE(pool.Submit([&](const std::stop_token&) {
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    const std::lock_guard lock(mutex);
    names.insert(name.data());
  }));
  pool.Finish();
  EXPECT_EQ(names, std::set<std::string>{"decode-0"});
}

TEST(WorkerPool, HoldsBackAProducerThatIsTooFast) {
  std::latch started(1), go(1);
  const auto made = WorkerPool::Start({.threads = 1, .queued = 1});
  ASSERT_TRUE(made);
  WorkerPool& pool = **made;
  ASSERT_TRUE(pool.Submit([&](const std::stop_token&) {
    started.count_down();
    go.wait();
  }));
  started.wait();
  ASSERT_TRUE(pool.Submit([](const std::stop_token&) {}));
  const Status third = pool.Submit([](const std::stop_token&) {}, MonotonicClock::now());
  EXPECT_EQ(third.error().code(), Code::kDeadline);
  go.count_down();
}

TEST(WorkerPool, StopsARunningTaskAndDropsTheWaitingOnes) {
  std::atomic<bool> ran = false;
  {
    std::latch started(1);
    const auto made = WorkerPool::Start({.threads = 1, .queued = 4});
    ASSERT_TRUE(made);
    WorkerPool& pool = **made;
    ASSERT_TRUE(pool.Submit([&](const std::stop_token& stop) {
      started.count_down();
      std::latch stopped(1);
      const std::stop_callback on_stop(stop, [&] { stopped.count_down(); });
      stopped.wait();
    }));
    started.wait();
    ASSERT_TRUE(pool.Submit([&](const std::stop_token& stop) {
      // The queue may be popped once more before it is abandoned; then the stop is visible.
      ran = !stop.stop_requested();
    }));
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace muster

#include "base/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace muster {
namespace {

Instant Past() { return MonotonicClock::now() - std::chrono::seconds(1); }

TEST(Queue, KeepsTheOrderAndMovesItems) {
  Queue<std::unique_ptr<int>> queue(2);
  ASSERT_TRUE(queue.Push(std::make_unique<int>(1)));
  ASSERT_TRUE(queue.Push(std::make_unique<int>(2)));
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(**queue.Pop(), 1);
  EXPECT_EQ(**queue.Pop(), 2);
}

TEST(Queue, GivesUpAtTheDeadline) {
  Queue<int> queue(1);
  EXPECT_EQ(queue.Pop(Past()).error().code(), Code::kDeadline);
  ASSERT_TRUE(queue.Push(1, Past()));  // room is there: no need to wait
  EXPECT_EQ(queue.Push(2, Past()).error().code(), Code::kDeadline);
  EXPECT_EQ(*queue.Pop(Past()), 1);
}

TEST(Queue, DrainsAfterCloseAndThenSaysSo) {
  Queue<int> queue(4);
  ASSERT_TRUE(queue.Push(1));
  queue.Close();
  EXPECT_EQ(queue.Push(2).error().code(), Code::kCancelled);
  EXPECT_EQ(*queue.Pop(), 1);
  EXPECT_EQ(queue.Pop().error().code(), Code::kCancelled);
}

TEST(Queue, DropsWhatIsLeftWhenAbandoned) {
  Queue<int> queue(4);
  ASSERT_TRUE(queue.Push(1));
  ASSERT_TRUE(queue.Push(2));
  EXPECT_EQ(queue.Abandon(), 2u);
  EXPECT_EQ(queue.Pop().error().code(), Code::kCancelled);
}

TEST(Queue, WakesEverybodyWhenItCloses) {
  Queue<int> empty(1);
  Queue<int> full(1);
  ASSERT_TRUE(full.Push(0));
  std::vector<std::jthread> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([&] { EXPECT_EQ(empty.Pop().error().code(), Code::kCancelled); });
    waiting.emplace_back([&] { EXPECT_EQ(full.Push(1).error().code(), Code::kCancelled); });
  }
  empty.Close();
  full.Close();
}

TEST(Queue, LosesNothingBetweenManyThreads) {
  constexpr int kItems = 10'000;
  Queue<int> queue(8);
  std::atomic<long> sum = 0;
  {
    std::vector<std::jthread> consumers;
    for (int i = 0; i < 3; ++i) {
      consumers.emplace_back([&] {
        while (const auto item = queue.Pop()) sum += *item;
      });
    }
    {
      std::vector<std::jthread> producers;
      for (int p = 0; p < 2; ++p) {
        producers.emplace_back([&] {
          for (int i = 1; i <= kItems; ++i) EXPECT_TRUE(queue.Push(i));
        });
      }
    }
    queue.Close();
  }
  EXPECT_EQ(sum, 2L * kItems * (kItems + 1) / 2);
}

}  // namespace
}  // namespace muster

#include "os/event_loop.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace muster::os {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::ElementsAre;

/// An eventfd that is readable from the start.
Fd Ready() { return Fd(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)); }

class EventLoopTest : public testing::Test {
 protected:
  std::unique_ptr<EventLoop> loop_ = *EventLoop::Create();
  std::vector<int> seen_;
};

TEST_F(EventLoopTest, CallsBackForReadyDescriptorsUntilStopped) {
  const Fd fd = Ready();
  int calls = 0;
  ASSERT_TRUE(loop_->Watch(fd.get(), EPOLLIN, [&](std::uint32_t events) {
    EXPECT_TRUE(events & EPOLLIN);
    if (++calls == 3) loop_->Stop();  // level-triggered: nobody reads it
  }));
  ASSERT_TRUE(loop_->Run());
  EXPECT_EQ(calls, 3);
}

TEST_F(EventLoopTest, RemovesAWatchFromInsideItsOwnCallback) {
  const Fd fd = Ready();
  WatchId id;
  auto payload = std::make_shared<int>(7);
  id = *loop_->Watch(fd.get(), EPOLLIN, [&, payload](std::uint32_t) {
    loop_->Remove(id);
    seen_.push_back(*payload);  // the callback outlives its removal
  });
  payload.reset();
  ASSERT_TRUE(loop_->RunOnce(seconds(1)));
  ASSERT_TRUE(loop_->RunOnce(nanoseconds(0)));
  EXPECT_THAT(seen_, ElementsAre(7));
}

TEST_F(EventLoopTest, DropsAnEventOfAWatchThatAnotherCallbackRemoved) {
  const Fd first = Ready();
  const Fd second = Ready();
  std::array<WatchId, 2> ids;
  for (const std::size_t i : {0u, 1u}) {
    ids[i] = *loop_->Watch(i == 0 ? first.get() : second.get(), EPOLLIN, [&, i](std::uint32_t) {
      seen_.push_back(static_cast<int>(i));
      for (const WatchId id : ids) loop_->Remove(id);
    });
  }
  ASSERT_TRUE(loop_->RunOnce(seconds(1)));
  ASSERT_TRUE(loop_->RunOnce(nanoseconds(0)));
  EXPECT_EQ(seen_.size(), 1u);
}

TEST_F(EventLoopTest, DoesNotGiveAnOldEventToANewWatchOnTheSameNumber) {
  const Fd trigger = Ready();
  Fd victim = Ready();
  WatchId victim_id;
  bool replaced = false;
  const auto replace = [&](std::uint32_t) {
    if (replaced) return;
    replaced = true;
    const int number = victim.get();
    loop_->Remove(victim_id);
    victim.Reset();
    victim.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));  // never readable
    EXPECT_EQ(victim.get(), number);
    ASSERT_TRUE(loop_->Watch(victim.get(), EPOLLIN, [&](std::uint32_t) { seen_.push_back(2); }));
  };
  ASSERT_TRUE(loop_->Watch(trigger.get(), EPOLLIN, replace));
  victim_id = *loop_->Watch(victim.get(), EPOLLIN, [&](std::uint32_t) { seen_.push_back(1); });
  for (int turn = 0; turn < 3; ++turn) ASSERT_TRUE(loop_->RunOnce(nanoseconds(0)));
  EXPECT_TRUE(replaced);
  EXPECT_THAT(seen_, testing::Not(testing::Contains(2)));
}

TEST_F(EventLoopTest, ChangesWhatAWatchWaitsFor) {
  const Fd fd = Ready();
  const WatchId id = *loop_->Watch(
      fd.get(), 0, [&](std::uint32_t events) { seen_.push_back(static_cast<int>(events)); });
  ASSERT_TRUE(loop_->RunOnce(nanoseconds(0)));
  EXPECT_TRUE(seen_.empty());
  ASSERT_TRUE(loop_->Change(id, EPOLLOUT));
  ASSERT_TRUE(loop_->RunOnce(seconds(1)));
  EXPECT_THAT(seen_, ElementsAre(EPOLLOUT));
  loop_->Remove(id);
  EXPECT_EQ(loop_->Change(id, EPOLLIN).error().code(), Code::kNotFound);
}

TEST_F(EventLoopTest, ADelayOfCenturiesDoesNotPassAtOnce) {
  loop_->After(nanoseconds::max(), [&] { seen_.push_back(1); });
  for (int turn = 0; turn < 3; ++turn) ASSERT_TRUE(loop_->RunOnce(milliseconds(1)));
  EXPECT_TRUE(seen_.empty());
}

TEST_F(EventLoopTest, RunsTimersInTheOrderOfTheirTimes) {
  const Instant now = MonotonicClock::now();
  loop_->At(now + milliseconds(2), [&] {
    seen_.push_back(2);
    loop_->Stop();
  });
  loop_->At(now + milliseconds(1), [&] { seen_.push_back(1); });
  loop_->At(now - seconds(1), [&] { seen_.push_back(0); });
  ASSERT_TRUE(loop_->Run());
  EXPECT_THAT(seen_, ElementsAre(0, 1, 2));
  EXPECT_GE(MonotonicClock::now(), now + milliseconds(2));
}

TEST_F(EventLoopTest, RemovesTimersAlsoFromInsideATimer) {
  const Instant now = MonotonicClock::now();
  TimerId second;
  loop_->At(now - seconds(2), [&] {
    seen_.push_back(1);
    loop_->Remove(second);
  });
  second = loop_->At(now - seconds(1), [&] { seen_.push_back(2); });
  const TimerId third = loop_->After(nanoseconds(0), [&] { seen_.push_back(3); });
  loop_->Remove(third);
  ASSERT_TRUE(loop_->RunOnce(seconds(1)));
  ASSERT_TRUE(loop_->RunOnce(nanoseconds(0)));
  EXPECT_THAT(seen_, ElementsAre(1));
}

TEST_F(EventLoopTest, DoesNotStarveOthersWhenATimerSetsItselfAgain) {
  std::function<void()> again = [&] { loop_->After(nanoseconds(0), again); };
  loop_->After(nanoseconds(0), again);
  const Fd fd = Ready();
  ASSERT_TRUE(loop_->Watch(fd.get(), EPOLLIN, [&](std::uint32_t) { loop_->Stop(); }));
  EXPECT_TRUE(loop_->Run());
}

TEST_F(EventLoopTest, RunsWhatOtherThreadsPost) {
  std::jthread other([&] {
    for (int i = 0; i < 100; ++i) loop_->Post([&, i] { seen_.push_back(i); });
    loop_->Stop();
  });
  ASSERT_TRUE(loop_->Run());
  other.join();
  ASSERT_TRUE(loop_->RunOnce(nanoseconds(0)));
  ASSERT_EQ(seen_.size(), 100u);
  EXPECT_EQ(seen_.back(), 99);
}

TEST_F(EventLoopTest, RefusesDescriptorsThatCannotBeWaitedFor) {
  const Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(loop_->Watch(file.get(), EPOLLIN, [](std::uint32_t) {}));
  EXPECT_FALSE(loop_->Watch(-1, EPOLLIN, [](std::uint32_t) {}));
}

TEST(EventLoopOnAFakeClock, JumpsToTheNextTimerWithoutWaiting) {
  FakeClock time;
  const auto loop = *EventLoop::Create(time);
  const Instant begin = time.Now();
  std::vector<std::int64_t> hours;
  const auto note = [&] {
    hours.push_back(std::chrono::duration_cast<std::chrono::hours>(time.Now() - begin).count());
  };
  loop->After(std::chrono::hours(5), [&] {
    note();
    loop->Stop();
  });
  loop->After(std::chrono::hours(2), [&] {
    note();
    loop->Post(note);
    loop->After(std::chrono::hours(1), note);
  });
  ASSERT_TRUE(loop->Run());
  EXPECT_EQ(hours, (std::vector<std::int64_t>{2, 2, 3, 5}));
  ASSERT_TRUE(loop->RunOnce(std::chrono::minutes(1)));
  EXPECT_EQ(time.Now() - begin, std::chrono::hours(5) + std::chrono::minutes(1));
}

}  // namespace
}  // namespace muster::os

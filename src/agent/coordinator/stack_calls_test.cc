#include "agent/coordinator/stack_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;

class StackCallsTest : public testing::Test {
 protected:
  StackCallsTest() : loop_(*os::EventLoop::Create(clock_)) {}
  void Call() {
    calls_.Call(
        {Rank(0), Rank(1)}, [this] { ++taken_; },
        [this](const std::vector<stacks::Process>& processes) { named_.push_back(processes); });
  }
  static std::string Json(std::uint32_t rank) {
    return stacks::ToJson({{.rank = rank, .pid = 7, .name = "train"}});
  }
  void Pass(std::chrono::nanoseconds time) {
    const Instant end = clock_.Now() + time;
    while (clock_.Now() < end) ASSERT_TRUE(loop_->RunOnce(end - clock_.Now()));
  }

  FakeClock clock_;
  std::unique_ptr<os::EventLoop> loop_;
  std::vector<std::uint64_t> asked_;
  StackCalls calls_{*loop_, [this](std::uint64_t id) { asked_.push_back(id); }};
  int taken_ = 0;
  std::vector<std::vector<stacks::Process>> named_;
};

TEST_F(StackCallsTest, PutsTogetherWhatNodesSay) {
  Call();
  calls_.Taken(asked_[0], {Rank(1)});
  EXPECT_EQ(taken_, 0);
  calls_.Named(asked_[0], {Rank(0)}, Json(0));
  EXPECT_EQ(taken_, 1) << "what has names was taken";
  EXPECT_TRUE(named_.empty());
  calls_.Named(asked_[0], {Rank(1)}, Json(1));
  ASSERT_EQ(named_.size(), 1u);
  EXPECT_EQ(named_[0][0].name, "train");
  EXPECT_EQ(named_[0][1].rank, 1u);
  EXPECT_FALSE(calls_.pending());
}

TEST_F(StackCallsTest, WaitsASecondForTheCopiesAndTenForTheNames) {
  Call();
  Pass(seconds(1));
  EXPECT_EQ(taken_, 1);
  calls_.Named(asked_[0], {Rank(1)}, Json(1));
  EXPECT_TRUE(named_.empty());
  Pass(seconds(9));
  ASSERT_EQ(named_.size(), 1u);
  EXPECT_EQ(named_[0][0].missing, "its node did not answer in time");
  EXPECT_EQ(named_[0][1].name, "train");
  calls_.Named(asked_[0], {Rank(0)}, Json(0));
  EXPECT_EQ(named_.size(), 1u) << "too late";
}

TEST_F(StackCallsTest, GivesEverybodyWhoCallsMeanwhileTheSame) {
  Call();
  Call();
  calls_.Taken(asked_[0], {Rank(0), Rank(1)});
  EXPECT_EQ(taken_, 2);
  Call();
  EXPECT_EQ(taken_, 3);
  EXPECT_EQ(asked_.size(), 1u);
  calls_.Named(asked_[0], {Rank(0), Rank(1)}, "no json");
  ASSERT_EQ(named_.size(), 3u);
  EXPECT_EQ(named_[2][0].missing, "nothing was said of it");
  Call();
  EXPECT_EQ(asked_.size(), 2u);
}

}  // namespace
}  // namespace muster::agent

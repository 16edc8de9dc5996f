#include "agent/coordinator/steady_pulse.h"

#include <gtest/gtest.h>

#include "agent/coordinator/hang_watch.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kBegan{std::chrono::hours(1)};

os::Pulse In(Instant since) {
  return {
      .generation = Generation(1), .phase = os::Phase::kForward, .step = 3, .phase_since = since};
}

TEST(SteadyPulse, KeepsAMomentThatABetterGuessMoves) {
  EXPECT_EQ(Steadied(In(kBegan - milliseconds(3)), In(kBegan)).phase_since, kBegan);
  EXPECT_EQ(Steadied(In(kBegan + milliseconds(3)), In(kBegan)).phase_since, kBegan);
}

TEST(SteadyPulse, TellsAPhaseThatBeganAnew) {
  const Instant anew = kBegan + milliseconds(100);
  EXPECT_EQ(Steadied(In(anew), In(kBegan)).phase_since, anew);
  os::Pulse next = In(kBegan + milliseconds(3));
  next.step = 4;
  EXPECT_EQ(Steadied(next, In(kBegan)).phase_since, next.phase_since);
}

TEST(SteadyPulse, LetsAHangOfAnotherHostBeFound) {
  HangWatch watch(1);
  std::vector<RankSight> sights = {{.alive = true, .pulse = In(kBegan)}};
  Instant now = kBegan;
  bool found = false;
  for (int i = 0; i < 400 && !found; ++i) {
    now += milliseconds(100);
    // The guess is another one each second.
    sights[0].pulse = Steadied(In(kBegan - milliseconds(i / 10 % 7)), sights[0].pulse);
    found = watch.Look(sights, now).has_value();
  }
  EXPECT_TRUE(found);
  EXPECT_LT(now - kBegan, seconds(31));
}

}  // namespace
}  // namespace muster::agent

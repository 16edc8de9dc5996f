#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace muster {
namespace {

using testing::HasSubstr;

TEST(Metrics, RendersPrometheusText) {
  Metrics metrics;
  metrics
      .GetCounter({"muster_restarts_total", "Restarts of \"workers\".\nAll."}, {{"cause", "fault"}})
      .Add(3);
  metrics.GetGauge({"muster_ranks", "Ranks that run."}).Set(2);
  Histogram& steps =
      metrics.GetHistogram({"muster_step_seconds", "Step time."}, {0.5, 1}, {{"rank", "0"}});
  for (const double value : {0.1, 0.5, 0.7, 9.0}) steps.Observe(value);
  EXPECT_EQ(metrics.Render(),
            "# HELP muster_ranks Ranks that run.\n"
            "# TYPE muster_ranks gauge\n"
            "muster_ranks 2\n"
            "# HELP muster_restarts_total Restarts of \"workers\".\\nAll.\n"
            "# TYPE muster_restarts_total counter\n"
            "muster_restarts_total{cause=\"fault\"} 3\n"
            "# HELP muster_step_seconds Step time.\n"
            "# TYPE muster_step_seconds histogram\n"
            "muster_step_seconds_bucket{rank=\"0\",le=\"0.5\"} 2\n"
            "muster_step_seconds_bucket{rank=\"0\",le=\"1\"} 3\n"
            "muster_step_seconds_bucket{rank=\"0\",le=\"+Inf\"} 4\n"
            "muster_step_seconds_sum{rank=\"0\"} 10.3\n"
            "muster_step_seconds_count{rank=\"0\"} 4\n");
}

TEST(Metrics, GiveTheSameMetricForTheSameName) {
  Metrics metrics;
  metrics.GetCounter({"muster_a_total", ""}).Add();
  metrics.GetCounter({"muster_a_total", ""}).Add();
  EXPECT_EQ(metrics.GetCounter({"muster_a_total", ""}).value(), 2u);
}

TEST(Metrics, EscapeHostileLabelValues) {
  Metrics metrics;
  metrics.GetGauge({"muster_g", "h"}, {{"name", "a\"} 1\nmuster_fake 2\\"}}).Set(1);
  EXPECT_THAT(metrics.Render(), HasSubstr("muster_g{name=\"a\\\"} 1\\nmuster_fake 2\\\\\"} 1\n"));
}

TEST(Metrics, CountTogetherWhatExceedsTheLimitOfLabels) {
  Metrics metrics;
  for (std::size_t i = 0; i < Metrics::kMaxSeries + 50; ++i) {
    metrics.GetCounter({"muster_x_total", ""}, {{"user", std::to_string(i)}}).Add();
  }
  EXPECT_THAT(metrics.Render(), HasSubstr("muster_x_total{other=\"true\"} 50\n"));
}

TEST(Metrics, PrintNumbersThatAreNotFinite) {
  Metrics metrics;
  metrics.GetGauge({"muster_g", "h"}).Set(std::nan(""));
  EXPECT_THAT(metrics.Render(), HasSubstr("muster_g NaN\n"));
  metrics.GetGauge({"muster_g", "h"}).Set(INFINITY);
  EXPECT_THAT(metrics.Render(), HasSubstr("muster_g +Inf\n"));
}

TEST(Metrics, CountFromManyThreadsWhileTheyAreRendered) {
  Metrics metrics;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&] {
        Counter& counter = metrics.GetCounter({"muster_c_total", "h"});
        Histogram& histogram = metrics.GetHistogram({"muster_h", "h"}, SecondsBuckets());
        for (int i = 0; i < 1000; ++i) {
          counter.Add();
          histogram.Observe(i * 0.001);
        }
      });
    }
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(metrics.Render().empty() && i > 1000);
  }
  EXPECT_EQ(metrics.GetCounter({"muster_c_total", "h"}).value(), 3000u);
  EXPECT_THAT(metrics.Render(), HasSubstr("muster_h_count 3000\n"));
}

TEST(MetricsDeathTest, RefuseTwoKindsUnderOneName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Metrics metrics;
  metrics.GetCounter({"muster_a", ""});
  EXPECT_DEATH(metrics.GetGauge({"muster_a", ""}), "broken invariant");
  EXPECT_DEATH(metrics.GetGauge({"muster-a", ""}), "broken invariant");
}

}  // namespace
}  // namespace muster

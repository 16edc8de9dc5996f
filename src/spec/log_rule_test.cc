#include "spec/log_rule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/job.h"

namespace muster::spec {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

Result<ParsedJob> JobWithRule(std::string_view rule) {
  return ParseJob(fmt::format("apiVersion: muster/v1\nkind: Job\nmetadata: {{name: a}}\nspec:\n"
                              "  command: [a]\n  logRules:\n    - {{{}}}\n",
                              rule),
                  "job.yaml");
}

LogRule Read(std::string_view rule) {
  const auto job = JobWithRule(rule);
  EXPECT_TRUE(job.has_value()) << (job ? "" : job.error().ToString());
  return job ? job->job.log_rules.at(0) : LogRule{};
}

std::string ErrorOf(std::string_view rule) {
  const auto job = JobWithRule(rule);
  return job ? "no error" : job.error().message();
}

TEST(LogRule, HasTheDefaultsOfTheDesign) {
  const LogRule rule = Read("name: r, pattern: x, every: 4m");
  EXPECT_EQ(rule.scope, LogRule::Scope::kAny);
  EXPECT_EQ(rule.stream, LogRule::Stream::kBoth);
  EXPECT_EQ(rule.on_non_number, LogRule::NonNumber::kFault);
  EXPECT_EQ(rule.action, LogRule::Act::kRestartProcess);
  EXPECT_EQ(rule.points, 1U);
}

TEST(LogRule, IsReadFromOurKeys) {
  const LogRule rule = Read(
      "name: r, pattern: 'tok=(.*)', startWithin: 2m, every: 30s, threshold: '< 80', "
      "points: 25, stop: done, fault: false, scope: each, stream: stderr, onNonNumber: slow, "
      "action: notify");
  EXPECT_EQ(rule, (LogRule{.name = "r",
                           .pattern = "tok=(.*)",
                           .start_within = minutes(2),
                           .every = seconds(30),
                           .threshold = Threshold{Threshold::Operator::kBelow, 80},
                           .points = 25,
                           .stop = "done",
                           .scope = LogRule::Scope::kEach,
                           .stream = LogRule::Stream::kErr,
                           .on_non_number = LogRule::NonNumber::kSlow,
                           .action = LogRule::Act::kNotify}));
}

TEST(LogRule, IsReadFromHyperPodsKeys) {
  const LogRule rule = Read(
      "name: LowThroughput, logPattern: '.*samples/sec: (\\d+).*', "
      "expectedStartCutOffInSeconds: 600, expectedRecurringFrequencyInSeconds: 300, "
      "metricThreshold: 80, operator: lteq, metricEvaluationDataPoints: 25, "
      "stopPattern: done, faultOnMatch: false");
  EXPECT_EQ(rule, (LogRule{.name = "LowThroughput",
                           .pattern = ".*samples/sec: (\\d+).*",
                           .start_within = seconds(600),
                           .every = seconds(300),
                           .threshold = Threshold{Threshold::Operator::kAtMost, 80},
                           .points = 25,
                           .stop = "done"}));
}

TEST(LogRule, IsGivenAndFaultyAtHyperPodsKeyToo) {
  const auto job = JobWithRule("name: r, logPattern: x, faultOnMatch: true");
  ASSERT_TRUE(job.has_value());
  EXPECT_TRUE(job->given.contains("spec.logRules[0].pattern"));
  EXPECT_TRUE(job->given.contains("spec.logRules[0].fault"));
  EXPECT_FALSE(job->given.contains("spec.logRules[0].every"));
  EXPECT_THAT(ErrorOf("name: r, logPattern: '(?=x)', every: 1m"), HasSubstr("job.yaml:7:29: "));
}

TEST(LogRule, IsRefusedWhereItMakesNoSense) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"name: r, pattern: x", "never fires"},
      {"name: r, pattern: '(x)', onNonNumber: ignore", "never fires"},
      {"name: r, pattern: '(?<=x)y', every: 1m", "7:26: 'spec.logRules[0].pattern'"},
      {"name: r, pattern: '(?<=x)y', every: 1m", "look-behind"},
      {"name: r, pattern: x, fault: true, stop: '(a)\\1'", "a reference back"},
      {"name: r, pattern: x, threshold: '> 5'", "captures no value"},
      {"name: r, pattern: '(x)', threshold: 5", "takes a sign and a number"},
      {"name: r, pattern: '(x)', threshold: '> nan'", "takes a sign and a number"},
      {"name: r, pattern: '(x)', metricThreshold: 5", "go together"},
      {"name: r, pattern: '(x)', metricThreshold: 5, operator: less", "lt, lteq, gt, gteq or eq"},
      {"name: r, pattern: '(x)', points: 0", "goes from 1"},
      {"name: r, pattern: '(x)', points: 3", "which is missing"},
      {"name: r, pattern: x, logPattern: x, every: 1m", "are the same key"},
      {"name: r, pattern: x, every: 0s", "is 0"},
      {"name: r, pattern: x, every: 1m, scope: some", "any, all, rank0 or each"},
      {"name: r, pattern: x, every: 1m, action: reboot", "restart-process"},
      {"name: r, pattern: x, evry: 1m", "did you mean 'every'"},
  };
  for (const auto& [rule, message] : cases) EXPECT_THAT(ErrorOf(rule), HasSubstr(message)) << rule;
}

TEST(Threshold, ReadsBackWhatItPrints) {
  for (const char* text : {"< 80", "<= 0.5", "> 5", ">= -1e-07", "= 0"}) {
    const auto threshold = ParseThreshold(text);
    ASSERT_TRUE(threshold.has_value()) << text;
    EXPECT_EQ(FormatThreshold(*threshold), text);
  }
  EXPECT_EQ(ParseThreshold("lteq 80"), (Threshold{Threshold::Operator::kAtMost, 80}));
  EXPECT_EQ(ParseThreshold(" >5 "), (Threshold{Threshold::Operator::kAbove, 5}));
  for (const char* text : {"", ">", "5", "> x", "> 5 6", "=> 5", "> inf"}) {
    EXPECT_FALSE(ParseThreshold(text).has_value()) << text;
  }
}

TEST(ParseFinite, TakesWhatProgramsPrintAndNothingElse) {
  EXPECT_EQ(ParseFinite("0.25"), 0.25);
  EXPECT_EQ(ParseFinite(" +1e3\t"), 1000);
  EXPECT_EQ(ParseFinite("-.5"), -0.5);
  EXPECT_EQ(ParseFinite("1e-400"), 0);
  for (const char* text : {"", "nan", "NaN", "-nan", "inf", "-Infinity", "1e999", "1,5", "5%",
                           "+-5", "0x10", "five"}) {
    EXPECT_EQ(ParseFinite(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster::spec

#include "profile/report/read_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "profile/report/fake_run.h"
#include "profile/report/scratch.h"

namespace muster::profile {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Result<RunRecords> Read(const Scratch& scratch) {
  const auto files = RunFiles::Open(scratch.path());
  if (!files) return files.error();
  return ReadRun(*files);
}

void Append(const Scratch& scratch, const char* file, std::string_view text) {
  std::ofstream(scratch.path() + "/" + file, std::ios::app) << text;
}

TEST(ReadRun, TakesTheEndThatTheEventsTellWhereResultJsonIsMissing) {
  for (const bool recovers : {true, false}) {
    const Scratch scratch;
    WriteFakeRun(scratch.path(), {.recovers = recovers});
    std::filesystem::remove(scratch.path() + "/result.json");
    const auto run = Read(scratch);
    ASSERT_TRUE(run.has_value() && run->result.has_value());
    EXPECT_EQ(run->result->state, recovers ? "SUCCEEDED" : "FAILED");
    EXPECT_EQ(run->result->exit_code, recovers ? 0 : 137);
    EXPECT_EQ(run->result->ended_ns, run->events.back().t_ns);
    EXPECT_THAT(run->notes,
                testing::ElementsAre("result.json is missing; the end is told by events.jsonl"));
  }
}

TEST(ReadRun, NamesTheVersionOfAResultThatIsNewer) {
  const Scratch scratch;
  WriteFakeRun(scratch.path());
  std::ofstream(scratch.path() + "/result.json") << R"({"format":"muster-result/2"})";
  const std::string unread =
      "result.json has format 'muster-result/2'; this muster reads muster-result/1";
  auto run = Read(scratch);
  EXPECT_EQ(run->result->state, "SUCCEEDED");
  EXPECT_THAT(run->notes, Contains(unread + "; the end is told by events.jsonl"));
  std::filesystem::remove(scratch.path() + "/events.jsonl");
  run = Read(scratch);
  EXPECT_FALSE(run->result.has_value());
  EXPECT_EQ(run->result_unread, unread);
}

TEST(ReadRun, ReadsAWholeRunWithoutANote) {
  const Scratch scratch;
  WriteFakeRun(scratch.path());
  const auto run = Read(scratch);
  ASSERT_TRUE(run.has_value()) << run.error().ToString();
  EXPECT_THAT(run->notes, IsEmpty());
  EXPECT_EQ(run->facts.name, "vit-fashion");
  EXPECT_EQ(run->facts.seed, 7U);
  ASSERT_EQ(run->steps.size(), 2U);
  EXPECT_EQ(run->steps[0].size(), 341U + 300U);
  EXPECT_EQ(run->evals.size(), 4U);
  ASSERT_TRUE(run->result.has_value());
  EXPECT_EQ(run->result->state, "SUCCEEDED");
}

TEST(ReadRun, SkipsTornAndForeignLinesAndSaysSo) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.steps = 10, .fault_step = 0});
  Append(scratch, "steps/rank-0.jsonl",
         "garbage\n{\"step\":-1}\n[1]\n{\"step\":11,\"gen\":1,\"beg");
  Append(scratch, "events.jsonl", "{\"t_ns\":1e99,\"event\":\"pause\"}\n");
  const auto run = Read(scratch);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->steps[0].size(), 10U);
  EXPECT_THAT(run->notes,
              Contains(HasSubstr("steps/rank-0.jsonl: 3 lines that could not be read")));
  EXPECT_THAT(run->notes, Contains(HasSubstr("steps/rank-0.jsonl ends in the middle of a line")));
  EXPECT_THAT(run->notes, Contains(HasSubstr("events.jsonl: 1 line that could not be read")));
}

TEST(ReadRun, NamesTheFolderWhoseRunJsonIsNotUsable) {
  const Scratch scratch;
  EXPECT_THAT(Read(scratch).error().message(), HasSubstr(scratch.path() + " is no run folder"));
  Append(scratch, "run.json", "[]");
  EXPECT_EQ(Read(scratch).error().message(), scratch.path() + ": run.json is not a JSON object");
}

TEST(ReadRun, TellsTheTimeOnlyOnTheClockOfTheRun) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.steps = 10, .fault_step = 0});
  const auto run = Read(scratch);  // of host node-1
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->read_ns, std::nullopt);
}

TEST(ReadRun, LivesWithMissingFiles) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.steps = 10, .fault_step = 0});
  for (const char* file :
       {"events.jsonl", "eval.jsonl", "result.json", "job.yaml", "steps/rank-1.jsonl"}) {
    std::filesystem::remove(scratch.path() + "/" + file);
  }
  const auto run = Read(scratch);
  ASSERT_TRUE(run.has_value());
  EXPECT_FALSE(run->result.has_value());
  EXPECT_THAT(run->notes, Contains(HasSubstr("1 of 2 ranks recorded no finished step")));
}

TEST(ReadRun, RefusesAFolderThatIsNoRun) {
  const Scratch scratch;
  EXPECT_EQ(Read(scratch).error().code(), Code::kNotFound);
  for (const char* text : {"", "{", "[]", "null", R"({"format":"muster-run/9"})",
                           R"({"format":"muster-run/1","created_ns":5})",
                           R"({"format":"muster-run/1","created_ns":-5,"ranks":1})",
                           R"({"format":"muster-run/1","created_ns":5,"ranks":4294967295})"}) {
    std::ofstream(scratch.path() + "/run.json") << text;
    const auto run = Read(scratch);
    ASSERT_FALSE(run.has_value()) << text;
    EXPECT_EQ(TraitsOf(run.error().code()).exit_code, 1) << text;  // no mistake of the words
  }
}

TEST(ReadRun, HoldsItsLimits) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.steps = 50, .fault_step = 0});
  const auto files = RunFiles::Open(scratch.path());
  ASSERT_TRUE(files.has_value());
  const auto run = ReadRun(*files, {.events = 3, .steps = 60, .evals = 1});
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->events.size(), 3U);
  EXPECT_EQ(run->steps[0].size() + run->steps[1].size(), 60U);
  EXPECT_THAT(run->notes, Contains(HasSubstr("steps/rank-1.jsonl is longer than a report reads")));
}

TEST(ReadStep, TakesANullLossAndUnknownKeys) {
  const auto row =
      ReadStep(R"({"step":3,"gen":1,"begin_ns":5,"total_us":7,"loss":null,"new":[1]})");
  ASSERT_TRUE(row.has_value());
  EXPECT_TRUE(std::isnan(row->loss));
  EXPECT_EQ(row->phase_us[1], 0U);
}

TEST(ReadEvent, RefusesWhatIsTooDeepOrTooLarge) {
  std::string deep = R"({"t_ns":1,"event":"pause","x":)";
  deep += std::string(30'000, '[') + std::string(30'000, ']') + "}";
  const auto event = ReadEvent(deep);
  ASSERT_TRUE(event.has_value());  // what is below is left out unread
  EXPECT_FALSE(ReadEvent(R"({"t_ns":18446744073709551615,"event":"pause"})").has_value());
  EXPECT_FALSE(ReadEvent(R"({"t_ns":1,"event":"fault","rank":70000})").has_value());
  EXPECT_FALSE(ReadEvent("{\"t_ns\":1,\"event\":\"\xFF\"}").has_value());
}

}  // namespace
}  // namespace muster::profile

#include "train/report.h"

#include <gtest/gtest.h>

#include "base/memory_files.h"

namespace muster::train {
namespace {

std::string Line(std::uint64_t step, std::uint64_t generation) {
  return EvalLine(step, generation, {.loss_sum = 4, .correct = 1, .count = 2});
}

TEST(Scores, HaveOneLineAStepTheLastOne) {
  MemoryFiles files;
  ASSERT_TRUE(files.MakeDirectory("/run", 0700));
  const auto keep = [&](std::uint64_t step, std::uint64_t generation) {
    EXPECT_TRUE(KeepScore(files, "/run/eval.jsonl", step, Line(step, generation)));
  };
  const auto scores = [&] { return *files.ReadAll("/run/eval.jsonl", 1_MiB); };
  keep(10, 1);
  keep(100, 1);
  EXPECT_EQ(scores(), Line(10, 1) + Line(100, 1));
  keep(10, 2);  // a replay
  EXPECT_EQ(scores(), Line(100, 1) + Line(10, 2));
  keep(100, 2);
  keep(100, 3);  // a restart behind the last step
  EXPECT_EQ(scores(), Line(10, 2) + Line(100, 3));
}

TEST(Scores, AreNoneWhereALineWasTornOff) {
  const std::string torn = Line(10, 1) + Line(20, 1).substr(0, 15);
  EXPECT_TRUE(HasScore(torn, 10));
  EXPECT_FALSE(HasScore(torn, 20));
  EXPECT_FALSE(HasScore(torn, 1));
  EXPECT_EQ(ScoresWith(torn, 20, Line(20, 2)), Line(10, 1) + Line(20, 2));
  EXPECT_EQ(ScoresWith(torn, 30, Line(30, 2)), Line(10, 1) + Line(30, 2));
  EXPECT_EQ(ScoresWith("", 30, Line(30, 2)), Line(30, 2));
}

}  // namespace
}  // namespace muster::train

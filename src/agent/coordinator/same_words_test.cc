#include "agent/coordinator/same_words.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(SameWords, LeavesOutNumbersAndNothingElse) {
  const struct {
    const char* text;
    const char* rest;
  } cases[] = {
      {"", ""},
      {"no number", "no number"},
      {"row 31: the label is -1, expected 0 to 9", "row #: the label is -#, expected # to #"},
      {"the loss is 1.5e-07 at lr=2E+3", "the loss is # at lr=#"},
      {"took 1h20m, or 32.5ms, or 0:00:05.12", "took #h#m, or #ms, or #:#:#"},
      {"torch 2.13.0 at 10.0.0.1:29500", "torch # at #:#"},
      {"<Foo object at 0x7f3A2b>", "<Foo object at #>"},
      {"0x is none, 0xfg neither", "#x is none, #xfg neither"},
      {"run 3f9a2c71 of a job_id 00c0ffee", "run # of a job_id #"},
      {"CRC32C is 9af67815, recorded 4b13560b", "CRC32C is #, recorded #"},
      {"deadbeef and facade are words", "deadbeef and facade are words"},
      {"expected float32, got float64", "expected float32, got float64"},
      {"conv2d of layer4.weight", "conv2d of layer4.weight"},
      {"/tmp/job_8231/step-000013", "/tmp/job_#/step-#"},
      {"123456.5 of 123456", "# of #"},
      {"ends with 5e", "ends with #e"},
      {"1.", "#."},
      {"größe7 ist 3", "größe7 ist #"},
  };
  for (const auto& c : cases) EXPECT_EQ(WithoutNumbers(c.text), c.rest) << c.text;
}

TEST(SameWords, TellsFailuresApartByTheirNamesAndNotByTheirNumbers) {
  EXPECT_TRUE(SameWords("KeyError: 'x'", "KeyError: 'x'"));
  EXPECT_TRUE(SameWords("", ""));
  EXPECT_TRUE(SameWords("out of memory: 512 of 1024 MiB", "out of memory: 3 of 80 MiB"));
  EXPECT_TRUE(SameWords("bad pointer 0x7ffd00", "bad pointer 0x55d01a2b"));
  EXPECT_FALSE(SameWords("KeyError: 'x'", "KeyError: 'y'"));
  EXPECT_FALSE(SameWords("expected float32, got float64", "expected float64, got float32"));
  EXPECT_FALSE(SameWords("took 5 s", "took 5 ms"));
  EXPECT_FALSE(SameWords("shape [2, 3]", "shape [2, 3, 4]"));
  EXPECT_FALSE(SameWords("the loss is nan", "the loss is 3"));
  EXPECT_FALSE(SameWords("row 5", ""));
}

}  // namespace
}  // namespace muster::agent

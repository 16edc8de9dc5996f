#include "base/absent.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace muster {
namespace {

TEST(Absent, NamesThePlaceThatWasLookedAt) {
  const Error error = Absent("run folder", "a/../nosuch", "look at the name");
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.message(),
            "there is no run folder at " + (std::filesystem::current_path() / "nosuch").string());
  EXPECT_EQ(error.hint(), "look at the name");
  EXPECT_EQ(Absent("job file", "/x/y.yaml", "").message(), "there is no job file at /x/y.yaml");
}

TEST(Absent, DoesNotTakeAnEmptyNameForTheWorkingFolder) {
  EXPECT_EQ(Absent("job file", "", "").message(), "the job file has no name");
}

}  // namespace
}  // namespace muster

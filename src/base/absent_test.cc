#include "base/absent.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace muster {
namespace {

TEST(Absent, NamesThePlaceThatWasLookedAt) {
  const Error error = Absent("run folder", "a/../nosuch", "look at the name");
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.message(),
            "there is no run folder at " + (std::filesystem::current_path() / "nosuch").string());
  EXPECT_EQ(error.hint(), "look at the name");
}

TEST(Absent, SaysHowFarThePathLeads) {
  EXPECT_EQ(Absent("job file", "/nosuch.yaml", "").message(),
            "there is no job file at /nosuch.yaml");
  EXPECT_EQ(Absent("folder", "/nosuch/", "").message(), "there is no folder at /nosuch/");
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(
      Absent("job file", "nosuch/b/c.yaml", "").message(),
      "there is no job file at " + here + "/nosuch/b/c.yaml, of that only " + here + " exists");
}

TEST(Absent, NamesWhatWasMeant) {
  const std::filesystem::path folder = testing::TempDir() + "absent-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder / ".tarin.py");
  std::filesystem::create_directories(folder / "train.py");
  std::filesystem::create_directories(folder / "other");
  const auto tell = [&](const char* name) {
    return Absent("script", (folder / name).string(), "").message();
  };
  EXPECT_EQ(tell("tarin.py"),
            "there is no script at " + (folder / "tarin.py").string() + ": did you mean train.py?");
  EXPECT_EQ(tell("xyz"), "there is no script at " + (folder / "xyz").string());
  std::filesystem::remove_all(folder);
}

TEST(Absent, DoesNotTakeAnEmptyNameForTheWorkingFolder) {
  EXPECT_EQ(Absent("job file", "", "").message(), "the job file has no name");
}

}  // namespace
}  // namespace muster

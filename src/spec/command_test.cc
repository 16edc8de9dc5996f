#include "spec/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::spec {
namespace {

using testing::HasSubstr;

const Variables kVariables{{"MUSTER_DATA_0", "/data/a b"}, {"MUSTER_DATA_10", "/ten"}};

TEST(ExpandArgument, ReplacesOurVariablesOnly) {
  EXPECT_EQ(*ExpandArgument("$MUSTER_DATA_0", kVariables), "/data/a b");
  EXPECT_EQ(*ExpandArgument("--data=${MUSTER_DATA_10}/x", kVariables), "--data=/ten/x");
  EXPECT_EQ(*ExpandArgument("$MUSTER_DATA_10$MUSTER_DATA_0", kVariables), "/ten/data/a b");
  EXPECT_EQ(*ExpandArgument("$HOME $ ${X} $MUSTER a$", kVariables), "$HOME $ ${X} $MUSTER a$");
  EXPECT_EQ(*ExpandArgument("", kVariables), "");
}

TEST(ExpandArgument, KeepsADoubledDollarAsText) {
  EXPECT_EQ(*ExpandArgument("$$MUSTER_DATA_0", kVariables), "$MUSTER_DATA_0");
  EXPECT_EQ(*ExpandArgument("$$HOME", kVariables), "$$HOME");
}

TEST(ExpandArgument, LeavesWhatWorkersHaveInTheirEnvironment) {
  for (const char* text : {"echo $MUSTER_RUN", "${MUSTER_GENERATION}x", "$MUSTER_CHECKPOINT_DIR/a",
                           "$MUSTER_GENERATION_FILE"}) {
    EXPECT_EQ(*ExpandArgument(text, {}), text);
  }
  EXPECT_EQ(*ExpandArgument("$$MUSTER_RUN", {}), "$MUSTER_RUN");
  const auto unknown = ExpandArgument("$MUSTER_RUNS", {});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().hint(), HasSubstr("write $$MUSTER_RUNS"));
}

TEST(ExpandArgument, NamesAVariableThatDoesNotExist) {
  const auto expanded = ExpandArgument("$MUSTER_DATA_1", kVariables);
  ASSERT_FALSE(expanded.has_value());
  EXPECT_THAT(expanded.error().message(), HasSubstr("$MUSTER_DATA_1 does not exist"));
  EXPECT_THAT(expanded.error().message(), HasSubstr("$MUSTER_DATA_0, $MUSTER_DATA_10"));
}

TEST(DataPath, IsWhereWorkersFindTheData) {
  EXPECT_EQ(DataPath({.uri = "s3://b/k", .at = "/data"}), "/data");
  EXPECT_EQ(DataPath({.uri = "file:///x/y"}), "/x/y");
  EXPECT_EQ(DataPath({.uri = "rel/y"}), "rel/y");
  EXPECT_EQ(DataPath({.uri = "s3://b/k"}), "s3://b/k");
}

}  // namespace
}  // namespace muster::spec

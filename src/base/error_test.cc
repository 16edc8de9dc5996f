#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

namespace muster {
namespace {

TEST(Error, AddsContextInFrontAndKeepsTheHintNearestToTheFault) {
  Error error = Error(Code::kNotFound, "no file x", "make it").Within("read manifest");
  error = std::move(error).Hint("another hint");
  EXPECT_EQ(error.ToString(), "read manifest: no file x; make it");
  EXPECT_EQ(Error(Code::kBug, "m").Hint("h").ToString(), "m; h");
  EXPECT_EQ(Error(Code::kBug, "m").ToString(), "m");
}

TEST(Error, OfASystemCallSaysWhatTheCallerCanDo) {
  EXPECT_EQ(ErrnoError("open /x", ENOENT).message(), "open /x: no such file or directory");
  EXPECT_EQ(ErrnoError("", ENOENT).code(), Code::kNotFound);
  EXPECT_EQ(ErrnoError("", ENOSPC).code(), Code::kExhausted);
  EXPECT_EQ(ErrnoError("", EIO).code(), Code::kDataLoss);
  EXPECT_EQ(ErrnoError("", EACCES).code(), Code::kDenied);
  EXPECT_EQ(ErrnoError("", EAGAIN).code(), Code::kUnavailable);
  EXPECT_EQ(ErrnoError("", 123456).code(), Code::kPrecondition);
}

TEST(Error, OfASystemCallNamesTheNextStepWhereItIsAlwaysTheSame) {
  for (const int value : {EACCES, EPERM, EROFS, ENOSPC, EDQUOT, EMFILE, EFBIG}) {
    EXPECT_FALSE(ErrnoError("open /x", value).hint().empty()) << value;
  }
  EXPECT_TRUE(ErrnoError("open /x", ENOENT).hint().empty());
}

TEST(CodeTraits, NameEachCodeAndFollowTheContractOfTheCommandLine) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Code::kBug); ++i) {
    const CodeTraits& traits = TraitsOf(static_cast<Code>(i));
    EXPECT_NE(traits.exit_code, 0);
    EXPECT_GE(traits.http_status, 400);
    names.insert(traits.name);
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Code::kBug) + 1);
  EXPECT_EQ(TraitsOf(Code::kInvalid).exit_code, 2);
  EXPECT_EQ(TraitsOf(Code::kNotFound).exit_code, 3);
  EXPECT_EQ(TraitsOf(Code::kDenied).exit_code, 4);
  EXPECT_EQ(TraitsOf(Code::kConflict).exit_code, 5);
  EXPECT_EQ(TraitsOf(Code::kUnavailable).exit_code, 6);
  EXPECT_EQ(TraitsOf(Code::kDeadline).exit_code, 7);
  EXPECT_EQ(TraitsOf(Code::kCancelled).exit_code, 130);
}

TEST(CheckDeathTest, SaysWhereAndWhatBroke) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(MUSTER_CHECK(1 + 1 == 3), "error_test.cc:.*1 \\+ 1 == 3");
}

}  // namespace
}  // namespace muster

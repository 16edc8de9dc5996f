#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "agent/launch/command_writer.h"
#include "agent/run/accounting.h"
#include "agent/run/append_file.h"
#include "agent/run/fault_record.h"
#include "agent/run/rank_board.h"
#include "agent/run/run_folder.h"
#include "agent/shim/command.h"
#include "agent/testing/full_disk.h"
#include "base/durable.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Instant At(double ms) { return Instant(nanoseconds(static_cast<std::int64_t>(ms * 1e6))); }

os::StepRecord Step(std::uint64_t step, std::uint32_t generation, double begin_ms) {
  os::StepRecord record;
  record.step = step;
  record.generation = generation;
  record.begin_ns = At(begin_ms).time_since_epoch().count();
  record.total_us = 10'000;
  return record;
}

TEST(Accounting, SplitsTheCostOfAFault) {
  Accounting accounting(2);
  for (std::uint64_t step = 1; step <= 5; ++step) {
    for (std::uint32_t rank : {0U, 1U}) {
      accounting.Stepped(Rank(rank), Step(step, 1, 1000 + 10.0 * static_cast<double>(step)));
    }
  }
  accounting.FaultStruck(At(1065), 5);
  accounting.Paused(At(1085));
  accounting.WorkersStopped(At(1095));
  EXPECT_FALSE(accounting.AllStepped(Generation(2)));
  // Both resume behind step 3; rank 1 begins later and ends step 5 at 1235.
  for (std::uint64_t step = 4; step <= 6; ++step) {
    const double at = 1200 + 10.0 * static_cast<double>(step - 4);
    accounting.Stepped(Rank(0), Step(step, 2, at));
    accounting.Stepped(Rank(1), Step(step, 2, at + 5));
  }
  EXPECT_TRUE(accounting.AllStepped(Generation(2)));
  const LostTime lost = accounting.lost();
  EXPECT_NEAR(lost.detect_s, 0.020, 1e-9);
  EXPECT_NEAR(lost.stop_s, 0.010, 1e-9);
  EXPECT_NEAR(lost.start_s, 0.110, 1e-9);   // 1095 → 1205
  EXPECT_NEAR(lost.replay_s, 0.020, 1e-9);  // 1205 → 1225
  const auto recovery = accounting.TakeRecovery();
  ASSERT_TRUE(recovery.has_value());
  EXPECT_EQ(recovery->resume_step, 3U);
  EXPECT_NEAR(recovery->seconds, 0.150, 1e-9);  // 1065 → 1215
  EXPECT_FALSE(accounting.TakeRecovery().has_value());
  // Six new steps of 10 ms from 1010 to 1230.
  EXPECT_NEAR(*accounting.Goodput(), 60.0 / 220.0, 1e-9);
}

TEST(Accounting, AFaultDuringARecoveryClosesIt) {
  Accounting accounting(1);
  accounting.Stepped(Rank(0), Step(9, 1, 100));
  accounting.FaultStruck(At(200), 9);
  accounting.Paused(At(210));
  accounting.WorkersStopped(At(220));
  accounting.FaultStruck(At(300), 0);
  EXPECT_NEAR(accounting.lost().start_s, 0.080, 1e-9);
  EXPECT_EQ(accounting.lost().replay_s, 0);
}

TEST(AppendFile, KeepsLinesOverAFullDisk) {
  const TemporaryFolder folder;
  FullDisk disk;
  AppendFile file(disk, folder.path() + "/events.jsonl", Bytes{20});
  for (const char* after : {"four\n", "five\n"}) {
    file.Append("one\n");
    disk.full = true;
    file.Append("two\n");
    file.Append("three\n");
    file.Append("does not fit any more\n");
    EXPECT_GT(file.waiting_bytes(), 0U);
    disk.full = false;
    EXPECT_TRUE(file.Flush());
    file.Append(after);
  }
  EXPECT_EQ(file.lost_bytes(), 44U);
  EXPECT_EQ(*PosixFiles().ReadAll(folder.path() + "/events.jsonl", 1_KiB),
            "one\ntwo\nthree\nfour\none\ntwo\nthree\nfive\n");
}

TEST(RankBoard, WritesAStepAsTheFormatSays) {
  os::StepRecord record;
  record.sequence = 7;
  record.step = 5;
  record.generation = 2;
  record.begin_ns = 123;
  record.total_us = 456;
  record.loss = 0.5F;
  record.phase_us = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(FormatStep(record),
            "{\"seq\":7,\"step\":5,\"gen\":2,\"begin_ns\":123,\"total_us\":456,\"loss\":0.5,"
            "\"phase_us\":{\"data\":1,\"forward\":2,\"backward\":3,\"comm\":4,\"optimizer\":5,"
            "\"checkpoint\":6,\"eval\":7}}\n");
  record.loss = NAN;
  EXPECT_THAT(FormatStep(record), HasSubstr("\"loss\":null"));
}

TEST(FaultRecord, FindsTheLineThatNamesTheException) {
  EXPECT_EQ(ExceptionLine("Traceback:\n  file\nValueError: <a at 0x7fff12ab> bad\n\n"),
            "ValueError: <a at 0x…> bad");
  EXPECT_EQ(ExceptionLine("\n \r\n"), "");
  EXPECT_EQ(ExceptionLine(std::string(5000, 'x')).size(), 500U);
}

TEST(FaultRecord, IsJsonWhateverAWorkerWrote) {
  FaultRecord record;
  record.err_tail = std::string("\xff\x00\x1b[31m", 7);
  EXPECT_THAT(FormatFault(record), HasSubstr("muster-fault/1"));
}

TEST(RunFolder, RefusesASecondRunAndNamesTheFirst) {
  const TemporaryFolder folder;
  const RunFacts facts{.id = "abc", .name = "job", .version = "1", .ranks = 2, .job_yaml = "x\n"};
  {
    const auto first = RunFolder::Create(PosixFiles(), folder.path() + "/a/b", facts, FakeClock());
    ASSERT_TRUE(first.has_value());
    const auto second = RunFolder::Create(PosixFiles(), folder.path() + "/a/b", facts, FakeClock());
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().code(), Code::kConflict);
    EXPECT_THAT(second.error().message(), HasSubstr("run abc, process"));
  }
  {
    // An attempt that did not begin is none.
    auto again = RunFolder::Create(PosixFiles(), folder.path() + "/a/b", facts, FakeClock());
    ASSERT_TRUE(again.has_value());
    ASSERT_TRUE(again->Begin());
  }
  const auto third = RunFolder::Create(PosixFiles(), folder.path() + "/a/b", facts, FakeClock());
  EXPECT_EQ(third.error().code(), Code::kAlreadyExists);
}

TEST(RunFolder, NamesTheHolderWhateverItsLockSays) {
  const TemporaryFolder folder;
  const RunFacts facts{.id = "abc", .name = "job", .version = "1", .ranks = 2, .job_yaml = "x\n"};
  const std::string path = folder.path() + "/run";
  const auto first = RunFolder::Create(PosixFiles(), path, facts, FakeClock());
  ASSERT_TRUE(first.has_value());
  const std::string hostile = R"({"id": 5, "pid": "x", "host": null, "created_utc": [1]})";
  std::ofstream(path + "/lock") << hostile;
  const auto second = RunFolder::Create(PosixFiles(), path, facts, FakeClock());
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message(), HasSubstr("run 5, process x on host ? since ?"));
}

TEST(RunFolder, TakesOverWhatAnAttemptBeforeRunJsonLeft) {
  const TemporaryFolder folder;
  const RunFacts facts{.id = "abc", .name = "job", .version = "1", .ranks = 2, .job_yaml = "x\n"};
  const std::string path = folder.path() + "/run";
  FullDisk disk;
  ASSERT_TRUE(PosixFiles().MakeDirectory(path, 0700));
  ASSERT_TRUE(PosixFiles().MakeDirectory(path + "/steps", 0700));
  disk.full = true;
  ASSERT_FALSE(RunFolder::Create(disk, path, facts, FakeClock()));
  disk.full = false;
  EXPECT_TRUE(RunFolder::Create(disk, path, facts, FakeClock()));
}

TEST(RunFolder, MakesNothingForAPathThatIsTooLong) {
  const TemporaryFolder folder;
  std::string deep = folder.path() + "/top";
  while (deep.size() < 4000) deep += "/" + std::string(100, 'x');
  for (const std::string& path : {deep, folder.path() + "/top/" + std::string(256, 'y') + "/run"}) {
    const auto made = RunFolder::Create(PosixFiles(), path, {.id = "abc"}, FakeClock());
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code(), Code::kInvalid);
    EXPECT_THAT(made.error().hint(), HasSubstr("--run-dir"));
    EXPECT_FALSE(PosixFiles().Exists(folder.path() + "/top"));
  }
}

TEST(RunFolder, WritesWhereItWasMovedTo) {
  const TemporaryFolder folder;
  auto run = RunFolder::Create(PosixFiles(), folder.path() + "/run", {.id = "abc"}, FakeClock());
  ASSERT_TRUE(run.has_value());
  ASSERT_EQ(::rename((folder.path() + "/run").c_str(), (folder.path() + "/moved").c_str()), 0);
  EXPECT_TRUE(run->Write("fault.json", "{}"));
  EXPECT_TRUE(PosixFiles().Exists(folder.path() + "/moved/fault.json"));
  EXPECT_FALSE(PosixFiles().Exists(folder.path() + "/run"));
}

TEST(RunFolder, RefusesALinkWhereAFolderOfItsBelongs) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/run";
  ASSERT_TRUE(PosixFiles().MakeDirectory(path, 0700));
  ASSERT_EQ(::symlink("/tmp", (path + "/logs").c_str()), 0);
  EXPECT_FALSE(RunFolder::Create(PosixFiles(), path, {.id = "abc"}, FakeClock()));
}

/// Remembers which folders were synced.
class SyncSpy final : public FullDisk {
 public:
  Status SyncDirectory(const std::string& path) override {
    synced.push_back(path);
    return FullDisk::SyncDirectory(path);
  }
  std::vector<std::string> synced;
};

TEST(RunFolder, TheNamesOfTheFoldersItMakesSurviveAPowerCut) {
  const TemporaryFolder folder;
  SyncSpy files;
  ASSERT_TRUE(RunFolder::Create(files, folder.path() + "/a/b/run", {.id = "abc"}, FakeClock()));
  for (const char* parent : {"", "/a", "/a/b", "/a/b/run"}) {
    EXPECT_THAT(files.synced, ::testing::Contains(folder.path() + parent));
  }
}

TEST(FaultRecord, SaysWhoSawIt) {
  FaultRecord record;
  EXPECT_THAT(FormatFault(record), HasSubstr(R"("layer": "pidfd")"));
  record.fault.ending.start_error = ENOENT;
  EXPECT_THAT(FormatFault(record), HasSubstr(R"("layer": "start")"));
}

TEST(Command, ReadsBackWhatItWrote) {
  std::string bytes = *EncodeCommand({.folder = "/w",
                                      .program = "/bin/p",
                                      .arguments = {"p", "", "-x"},
                                      .environment = {"A=1", "B="}});
  std::vector<char*> table(shim::CommandTableSize(bytes.data(), bytes.size()));
  ASSERT_EQ(table.size(), 7U);
  shim::Command command;
  ASSERT_EQ(shim::ParseCommand(bytes.data(), bytes.size(), table.data(), table.size(), &command),
            0);
  EXPECT_STREQ(command.folder, "/w");
  EXPECT_STREQ(command.program, "/bin/p");
  EXPECT_THAT(std::vector<std::string>(command.argv, command.argv + 3), ElementsAre("p", "", "-x"));
  EXPECT_EQ(command.argv[3], nullptr);
  EXPECT_STREQ(command.environ[1], "B=");
  EXPECT_EQ(command.environ[2], nullptr);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_NE(shim::ParseCommand(bytes.data(), cut, table.data(), table.size(), &command), 0);
  }
}

TEST(Command, RefusesANulAndWhatIsTooLarge) {
  EXPECT_FALSE(EncodeCommand({.program = "p", .arguments = {std::string("a\0b", 3)}}));
  EXPECT_FALSE(EncodeCommand({.program = "p", .arguments = {std::string(9u << 20, 'x')}}));
}

}  // namespace
}  // namespace muster::agent

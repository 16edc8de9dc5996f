#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "agent/launch/command_writer.h"
#include "agent/run/append_file.h"
#include "agent/run/fault_record.h"
#include "agent/run/run_folder.h"
#include "agent/run/step_files.h"
#include "agent/shim/command.h"
#include "agent/testing/full_disk.h"
#include "base/durable.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST(AppendFile, BringsNoFolderBackThatWasRemoved) {
  const TemporaryFolder folder;
  AppendFile file(PosixFiles(), folder.path() + "/run/events.jsonl");
  file.Append("one\n");
  EXPECT_EQ(file.waiting_bytes(), 4U);
  EXPECT_FALSE(PosixFiles().Exists(folder.path() + "/run"));
}

TEST(StepFiles, WriteAStepAsTheFormatSays) {
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

TEST(FaultRecord, PrefersTheLineThatNamesAnErrorToWhatFollowsIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"A subcommand is required\nRun with --help for more information.\n",
       "A subcommand is required"},
      {"error: no recipe named 'vitt'\n  muster-train lists them\n", "no recipe named 'vitt'"},
      {"usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --stpes\n",
       "train.py: error: unrecognized arguments: --stpes"},
      {"[rank1]: Traceback\n[rank1]: ValueError: bad thing.\n[rank1]:[W1130 1.cpp:9] Warning: "
       "destroy_process_group() was not called\n",
       "ValueError: bad thing."},
      {"torch.OutOfMemoryError: out of memory\nsee the documentation\n",
       "torch.OutOfMemoryError: out of memory"},
      {"AssertionError\n", "AssertionError"},
      {"step 1 error rate: 0.5\nkilled\n", "killed"},
      {"Try 'sh --help' for more.\n", "Try 'sh --help' for more."},
  };
  for (const auto& [tail, line] : cases) EXPECT_EQ(ExceptionLine(tail), line) << tail;
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
  const std::string run = folder.path() + "/a/b";
  const auto third = RunFolder::Create(PosixFiles(), run, facts, FakeClock());
  EXPECT_EQ(third.error().code(), Code::kAlreadyExists);
  EXPECT_THAT(third.error().hint(), testing::EndsWith(": muster run " + run + "/job.yaml"));
  std::filesystem::create_directories(run + "/checkpoints/step-000000000003");
  const auto fourth = RunFolder::Create(PosixFiles(), run, facts, FakeClock());
  EXPECT_THAT(fourth.error().hint(), HasSubstr("muster run " + run + "/job.yaml --checkpoint-dir " +
                                               run + "/checkpoints"));
}

TEST(RunFolder, TellsTheFolderWhereItsJobsPathsHold) {
  const TemporaryFolder folder;
  const std::string run = folder.path() + "/run";
  auto made = RunFolder::Create(PosixFiles(), run, {.id = "abc"}, FakeClock());
  ASSERT_TRUE(made.has_value());
  ASSERT_TRUE(made->Begin());
  const auto facts = PosixFiles().ReadAll(run + "/run.json", 1_MiB);
  EXPECT_THAT(*facts, HasSubstr("\"cwd\": \"" + std::filesystem::current_path().string() + "\""));
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
  EXPECT_EQ(run->Now(), std::filesystem::canonical(folder.path()).string() + "/moved");
  std::filesystem::remove(folder.path() + "/moved/lock");
  EXPECT_NE(run->Now(), "");
  std::filesystem::remove_all(folder.path() + "/moved");
  std::filesystem::create_directory(folder.path() + "/run");
  EXPECT_EQ(run->Now(), "");
}

TEST(RunFolder, RefusesALinkWhereAFolderOfItsBelongs) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/run";
  ASSERT_TRUE(RunFolder::Create(PosixFiles(), path, {.id = "abc"}, FakeClock()));
  ASSERT_EQ(::rmdir((path + "/logs").c_str()), 0);
  ASSERT_EQ(::symlink("/tmp", (path + "/logs").c_str()), 0);
  EXPECT_FALSE(RunFolder::Create(PosixFiles(), path, {.id = "abc"}, FakeClock()));
}

/// Everything below a folder that must not change: names, modes, contents.
std::string Everything(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> all{
      fmt::format("{:o}", static_cast<unsigned>(fs::status(folder).permissions()))};
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto text = PosixFiles().ReadAll(entry.path(), 1_MiB);
    all.push_back(fmt::format("{} {:o} {}", entry.path().string(),
                              static_cast<unsigned>(entry.status().permissions()),
                              text ? *text : ""));
  }
  std::ranges::sort(all);
  return fmt::format("{}", fmt::join(all, "\n"));
}

TEST(RunFolder, LeavesAFolderWithFilesOfOthersAsItWas) {
  const RunFacts facts{.id = "abc", .name = "job", .version = "1", .ranks = 2, .job_yaml = "x\n"};
  for (const char* name : {"job.yaml", "lock", "run.json", "result.json", "events.jsonl",
                           "generation", "logs", "steps/mine", ".hidden", "control"}) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/mine";
    std::filesystem::create_directories(ParentOf(path + "/" + name));
    std::ofstream(path + "/" + name) << "name: mine\n";
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    const std::string before = Everything(path);
    const auto made = RunFolder::Create(PosixFiles(), path, facts, FakeClock());
    ASSERT_FALSE(made.has_value()) << name;
    EXPECT_EQ(made.error().code(), Code::kAlreadyExists);
    EXPECT_THAT(made.error().message(), HasSubstr(std::string(name).substr(0, 5)));
    EXPECT_THAT(made.error().hint(), HasSubstr("nothing was changed"));
    EXPECT_EQ(Everything(path), before);
  }
}

TEST(RunFolder, NamesWhatIsInTheWay) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b", "c", "d", "e"}) std::ofstream(folder.path() + "/" + name);
  const auto made = RunFolder::Create(PosixFiles(), folder.path(), {.id = "abc"}, FakeClock());
  EXPECT_EQ(made.error().message(), std::filesystem::canonical(folder.path()).string() +
                                        " holds what is not of a run: a, b, c and 2 more");
}

TEST(RunFolder, LeavesAJobThatWasPutBesideTheLeftoversOfAnAttempt) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/run";
  const RunFacts facts{.id = "abc", .job_yaml = "x\n"};
  ASSERT_TRUE(RunFolder::Create(PosixFiles(), path, facts, FakeClock()));
  std::ofstream(path + "/job.yaml") << "mine\n";
  const std::string before = Everything(path);
  EXPECT_FALSE(RunFolder::Create(PosixFiles(), path, facts, FakeClock()));
  EXPECT_EQ(Everything(path), before);
}

TEST(RunFolder, TakesTheLeftoversOfAnAttemptOfAnotherJob) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/run";
  ASSERT_TRUE(RunFolder::Create(PosixFiles(), path, {.id = "abc", .job_yaml = "x\n"}, FakeClock()));
  std::filesystem::create_directories(path + "/logs/rank-0");
  std::ofstream(path + "/logs/zygote.log") << "x";
  std::ofstream(path + "/logs/rank-0/gen-1.stdout.log");
  std::ofstream(path + "/run.json.tmp");
  for (const char* job : {"y\n", "z\n"}) {
    EXPECT_TRUE(RunFolder::Create(PosixFiles(), path, {.id = "def", .job_yaml = job}, FakeClock()));
  }
}

TEST(RunFolder, LeavesTheModeOfAnEmptyFolderThatWasThere) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/run";
  ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  ASSERT_TRUE(RunFolder::Create(PosixFiles(), path, {.id = "abc"}, FakeClock()));
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0755U);
}

TEST(RunFolder, MakesNoFolderOnlyToLeaveItAgain) {
  const TemporaryFolder folder;
  auto made =
      RunFolder::Create(PosixFiles(), folder.path() + "/no/../run", {.id = "abc"}, FakeClock());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->path(), std::filesystem::canonical(folder.path()).string() + "/run");
  EXPECT_FALSE(PosixFiles().Exists(folder.path() + "/no"));
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

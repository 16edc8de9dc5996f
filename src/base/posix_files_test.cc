#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/durable.h"
#include "base/fd.h"
#include "base/file_system.h"
#include "base/memory_files.h"

namespace muster {
namespace {

using testing::ElementsAre;

class PosixFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/muster_files_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { EXPECT_TRUE(files_.RemoveAll(root_)); }
  std::string At(const std::string& name) const { return root_ + "/" + name; }
  void Put(const std::string& name, std::string_view content) {
    const auto file = *files_.Create(At(name), {.replace = true});
    ASSERT_TRUE(file->Write(AsBytes(content)));
    ASSERT_TRUE(file->Close());
  }
  std::string Read(const std::string& name) {
    return files_.ReadAll(At(name), 1_MiB).value_or("(absent)");
  }
  Code CodeOf(const Status& status) { return status ? Code::kBug : status.error().code(); }

  FileSystem& files_ = PosixFiles();
  std::string root_;
};

TEST_F(PosixFilesTest, CreatesNewAppendsAndReplaces) {
  Put("a", "one");
  EXPECT_EQ(files_.Create(At("a"), {}).error().code(), Code::kAlreadyExists);
  {
    const auto file = *files_.Create(At("a"), {.append = true});
    ASSERT_TRUE(file->Write(AsBytes(" two")));
    ASSERT_TRUE(file->Sync());
  }
  EXPECT_EQ(Read("a"), "one two");
  Put("a", "three");
  EXPECT_EQ(Read("a"), "three");
}

TEST_F(PosixFilesTest, GivesTheModeThatWasAskedFor) {
  ASSERT_TRUE(WriteDurably(files_, At("secret"), AsBytes("x"), 0600));
  Put("secret.tmp", "left by a crash with mode 0644");
  ASSERT_TRUE(WriteDurably(files_, At("secret"), AsBytes("y"), 0600));
  struct stat info{};
  ASSERT_EQ(::stat(At("secret").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(PosixFilesTest, NeverWritesThroughALink) {
  Put("target", "precious");
  ASSERT_EQ(::symlink(At("target").c_str(), At("link").c_str()), 0);
  EXPECT_FALSE(files_.Create(At("link"), {.replace = true}));
  EXPECT_FALSE(files_.Create(At("link"), {.append = true}));
  ASSERT_TRUE(WriteDurably(files_, At("link"), AsBytes("new")));  // replaces the link itself
  EXPECT_EQ(Read("target"), "precious");
  EXPECT_EQ(Read("link"), "new");
}

TEST_F(PosixFilesTest, RefusesFifosDevicesAndFoldersInPlaceOfFiles) {
  ASSERT_EQ(::mkfifo(At("fifo").c_str(), 0600), 0);
  EXPECT_EQ(files_.ReadAll(At("fifo"), 1_MiB).error().code(), Code::kInvalid);
  EXPECT_FALSE(files_.Create(At("fifo"), {.append = true}));
  const Fd reader(::open(At("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(files_.Create(At("fifo"), {.append = true}).error().code(), Code::kInvalid);
  EXPECT_EQ(files_.ReadAll("/dev/zero", 1_MiB).error().code(), Code::kInvalid);
  EXPECT_EQ(files_.ReadAll(root_, 1_MiB).error().code(), Code::kInvalid);
}

TEST_F(PosixFilesTest, ReadsUpToTheLimitAndNotOneByteMore) {
  Put("ten", "0123456789");
  EXPECT_EQ(files_.ReadAll(At("ten"), Bytes{10})->size(), 10u);
  EXPECT_EQ(files_.ReadAll(At("ten"), Bytes{9}).error().code(), Code::kInvalid);
  EXPECT_FALSE(files_.ReadAll(At("ten"), Bytes{-1}));
  Put("empty", "");
  EXPECT_EQ(*files_.ReadAll(At("empty"), Bytes{0}), "");
  EXPECT_EQ(files_.ReadAll(At("none"), 1_MiB).error().code(), Code::kNotFound);
}

TEST_F(PosixFilesTest, RefusesAHugeSparseFileWithoutReadingIt) {
  Put("sparse", "");
  ASSERT_EQ(::truncate(At("sparse").c_str(), 1LL << 40), 0);
  EXPECT_EQ(files_.ReadAll(At("sparse"), 1_GiB).error().code(), Code::kInvalid);
}

TEST_F(PosixFilesTest, ReadsFilesThatDoNotKnowTheirSize) {
  EXPECT_THAT(*files_.ReadAll("/proc/self/status", 1_MiB), testing::HasSubstr("Pid:"));
}

TEST_F(PosixFilesTest, FailsForGoodAfterAFailedWrite) {
  // RLIMIT_FSIZE stands for the full disk; SIGXFSZ would end us.
  const auto file = *files_.Create(At("big"), {});
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto* const old_handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 10, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Status written = file->Write(AsBytes("0123456789abcdef"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(CodeOf(written), Code::kExhausted);
  EXPECT_EQ(CodeOf(file->Sync()), Code::kExhausted);
  EXPECT_EQ(CodeOf(file->Write(AsBytes("x"))), Code::kExhausted);
}

TEST_F(PosixFilesTest, RenamesToAFreeNameOnly) {
  ASSERT_TRUE(files_.MakeDirectory(At("a"), 0755));
  ASSERT_TRUE(files_.MakeDirectory(At("b"), 0755));  // plain rename would replace an empty folder
  EXPECT_EQ(CodeOf(files_.RenameNew(At("a"), At("b"))), Code::kAlreadyExists);
  EXPECT_TRUE(files_.RenameNew(At("a"), At("c")));
  EXPECT_EQ(CodeOf(files_.RenameNew(At("none"), At("d"))), Code::kNotFound);
  EXPECT_THAT(*files_.List(root_), ElementsAre("b", "c"));
}

TEST_F(PosixFilesTest, ExchangesTwoNames) {
  Put("a", "1");
  Put("b", "2");
  ASSERT_TRUE(files_.Exchange(At("a"), At("b")));
  EXPECT_EQ(Read("a"), "2");
  EXPECT_EQ(Read("b"), "1");
  EXPECT_EQ(CodeOf(files_.Exchange(At("a"), At("none"))), Code::kNotFound);
}

TEST_F(PosixFilesTest, RemovesAFolderButNotWhatItsLinksPointTo) {
  ASSERT_TRUE(files_.MakeDirectory(At("outside"), 0755));
  Put("outside/precious", "x");
  ASSERT_TRUE(files_.MakeDirectory(At("in"), 0755));
  ASSERT_TRUE(files_.MakeDirectory(At("in/sub"), 0755));
  Put("in/sub/file", "y");
  ASSERT_EQ(::symlink(At("outside").c_str(), At("in/link").c_str()), 0);
  ASSERT_TRUE(files_.RemoveAll(At("in")));
  EXPECT_FALSE(files_.Exists(At("in")));
  EXPECT_EQ(Read("outside/precious"), "x");
  ASSERT_EQ(::symlink(At("outside").c_str(), At("link").c_str()), 0);
  ASSERT_TRUE(files_.RemoveAll(At("link/")));  // a slash at the end does not make it follow
  EXPECT_FALSE(files_.Exists(At("link")));
  EXPECT_EQ(Read("outside/precious"), "x");
  EXPECT_TRUE(files_.RemoveAll(At("never/was")));
}

TEST_F(PosixFilesTest, RemovesATreeDeeperThanItMayOpenDescriptors) {
  Fd here(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int level = 0; level < 300; ++level) {
    ASSERT_EQ(::mkdirat(here.get(), "d", 0755), 0) << level;
    const Fd file(::openat(here.get(), "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    here.Reset(::openat(here.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(here.valid());
  }
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  const Status removed = files_.RemoveAll(At("d"));
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(removed) << removed.error().ToString();
  EXPECT_THAT(*files_.List(root_), ElementsAre("f"));
}

TEST_F(PosixFilesTest, RefusesToRemoveWhatNobodyCanMean) {
  Put("file", "x");
  for (const std::string& path : {std::string(), std::string("/"), At("."), At(".."), At("./")}) {
    EXPECT_EQ(CodeOf(files_.RemoveAll(path)), Code::kInvalid) << path;
  }
  EXPECT_EQ(Read("file"), "x");
}

TEST_F(PosixFilesTest, ListsNamesInOrder) {
  for (const char* name : {"b", "a", ".hidden"}) Put(name, "");
  EXPECT_THAT(*files_.List(root_), ElementsAre(".hidden", "a", "b"));
  EXPECT_EQ(files_.List(At("none")).error().code(), Code::kNotFound);
}

// The fake behaves like the machine where both are asked the same.
TEST_F(PosixFilesTest, AgreesWithMemoryFiles) {
  MemoryFiles memory;
  const auto run = [](FileSystem& files, const std::string& base) {
    std::vector<bool> results;
    const auto note = [&](const Status& status) { results.push_back(status.has_value()); };
    note(files.MakeDirectory(base + "x", 0755));
    note(files.MakeDirectory(base + "x", 0755));
    note(files.MakeDirectory(base + "none/x", 0755));
    results.push_back(files.Create(base + "x/f", {}).has_value());
    results.push_back(files.Create(base + "x/f", {}).has_value());
    results.push_back(files.Create(base + "x", {.replace = true}).has_value());
    note(files.MakeDirectory(base + "y", 0755));
    note(files.Rename(base + "y", base + "x"));    // not empty
    note(files.Rename(base + "x/f", base + "y"));  // a file over a folder
    note(files.Rename(base + "y", base + "x/f"));  // a folder over a file
    note(files.RenameNew(base + "x", base + "y"));
    note(files.Rename(base + "x", base + "y"));
    note(files.Exchange(base + "y", base + "none"));
    note(files.SyncDirectory(base + "y/f"));
    note(files.RemoveAll(base + "none"));
    results.push_back(files.ReadAll(base + "y", 1_MiB).has_value());
    results.push_back(files.List(base + "y/f").has_value());
    results.push_back(files.Exists(base + "y/f"));
    return results;
  };
  EXPECT_EQ(run(files_, root_ + "/"), run(memory, "/"));
}

}  // namespace
}  // namespace muster

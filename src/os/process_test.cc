#include "os/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/file_system.h"

namespace muster::os {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

/// A pipe whose write end goes into a child.
struct Pipe {
  Fd read;
  Fd write;
};
Pipe MakePipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

std::string ReadToEnd(Pipe& pipe) {
  pipe.write.Reset();
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto n = ::read(pipe.read.get(), buffer.data(), buffer.size());
    if (n <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

SpawnOptions Shell(const std::string& script) {
  return {.program = "/bin/sh", .arguments = {"sh", "-c", script}};
}

Exit ExitOfShell(const std::string& script) {
  const Process process = *Spawn(Shell(script));
  return process.Wait(seconds(20))->value();
}

std::string OutputOf(SpawnOptions options) {
  Pipe pipe = MakePipe();
  options.descriptors.push_back({pipe.write.get(), 1});
  const Process process = *Spawn(options);
  const std::string output = ReadToEnd(pipe);
  EXPECT_TRUE(process.Wait(seconds(20))->value().ok()) << output;
  return output;
}

TEST(Spawn, ReportsHowTheProgramEnded) {
  EXPECT_EQ(ExitOfShell("exit 0"), Exit{});
  EXPECT_EQ(ExitOfShell("exit 42"), Exit{.code = 42});
  EXPECT_EQ(ExitOfShell("kill -9 $$").signal, SIGKILL);
  EXPECT_EQ(ExitOfShell("kill -TERM $$").signal, SIGTERM);
}

TEST(Spawn, GivesExactlyTheEnvironmentArgumentsAndFolder) {
  SpawnOptions options = Shell("echo \"$1|$WORD|$HOME|$(pwd)\"");
  options.arguments.insert(options.arguments.end(), {"sh", "a b"});
  options.environment = {"WORD=x y"};
  options.directory = "/usr";
  EXPECT_EQ(OutputOf(options), "a b|x y||/usr\n");
}

TEST(Spawn, ClosesEveryDescriptorThatWasNotNamed) {
  const Fd leaky(::open("/dev/null", O_RDONLY));  // not CLOEXEC, as a careless library would
  SpawnOptions options{.program = "/bin/ls", .arguments = {"ls", "/proc/self/fd"}};
  // 3 is ls's own view of the folder.
  EXPECT_EQ(OutputOf(options), "0\n1\n2\n3\n");
}

TEST(Spawn, SwapsDescriptorsWithoutLosingOne) {
  Pipe first = MakePipe();
  Pipe second = MakePipe();
  SpawnOptions options = Shell("echo one >&7; echo two >&8");
  // Sources and targets overlap crosswise.
  const Fd seven(::fcntl(first.write.get(), F_DUPFD_CLOEXEC, 7));
  const Fd eight(::fcntl(second.write.get(), F_DUPFD_CLOEXEC, 8));
  options.descriptors = {{eight.get(), 7}, {seven.get(), 8}};
  const Process process = *Spawn(options);
  ASSERT_TRUE(process.Wait(seconds(20))->value().ok());
  std::array<char, 4> text{};
  ASSERT_EQ(::read(second.read.get(), text.data(), 4), 4);
  EXPECT_EQ(std::string(text.data(), 4), "one\n");
  ASSERT_EQ(::read(first.read.get(), text.data(), 4), 4);
  EXPECT_EQ(std::string(text.data(), 4), "two\n");
}

/// A mask of /proc/PID/status.
std::uint64_t MaskIn(const std::string& status, const std::string& name) {
  const std::size_t at = status.find(name);
  EXPECT_NE(at, std::string::npos);
  return std::stoull(status.substr(at + name.size()), nullptr, 16);
}

TEST(Spawn, ResetsIgnoredAndBlockedSignals) {
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  sigset_t all;
  sigset_t mask;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &mask);
  const std::string status =
      OutputOf({.program = "/bin/cat", .arguments = {"cat", "/proc/self/status"}});
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGPIPE, &before, nullptr);
  EXPECT_EQ(MaskIn(status, "SigBlk:"), 0u);
  // sigaction refuses glibc's own 32 and 33, which a parent using posix_spawn, as make does, leaves
  // ignored; no program can be the worse for it.
  constexpr std::uint64_t kGlibcOwn = std::uint64_t{3} << 31;
  EXPECT_EQ(MaskIn(status, "SigIgn:") & ~kGlibcOwn, 0u);
}

TEST(Spawn, SaysWhyAProgramCannotStart) {
  const auto missing = Spawn({.program = "/no/such/program"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("/no/such/program"));

  const auto folder = Spawn({.program = "/tmp"});
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code(), Code::kDenied);

  const auto nowhere = Spawn({.program = "/bin/true", .directory = "/no/such/folder"});
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message(), HasSubstr("start in folder /no/such/folder"));

  EXPECT_FALSE(Spawn({.program = "/bin/true", .descriptors = {{9999, 1}}}));
  // Nothing is left to reap.
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1);
}

TEST(Spawn, RefusesOptionsThatCannotBeMeant) {
  EXPECT_FALSE(Spawn({.program = ""}));
  EXPECT_FALSE(Spawn({.program = "/bin/true", .arguments = {std::string("a\0b", 3)}}));
  EXPECT_FALSE(Spawn({.program = "/bin/true", .descriptors = {{0, 5}, {1, 5}}}));
  EXPECT_FALSE(Spawn({.program = "/bin/true", .descriptors = {{-1, 5}}}));
}

TEST(Spawn, CanMakeASession) {
  SpawnOptions options = Shell("cat /proc/self/stat");
  options.arguments[2] = "exec cat /proc/self/stat";
  options.new_session = true;
  std::istringstream stat(OutputOf(options));
  std::string name, state;
  pid_t pid = 0, parent = 0, group = 0, session = 0;
  stat >> pid >> name >> state >> parent >> group >> session;
  EXPECT_EQ(session, pid);
  EXPECT_EQ(parent, ::getpid());
}

TEST(Spawn, EndsTheChildWithItsParent) {
  Pipe pipe = MakePipe();
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    SpawnOptions options{.program = "/bin/sleep", .arguments = {"sleep", "1000"}};
    options.descriptors = {{pipe.write.get(), 9}};
    options.parent_death_signal = SIGKILL;
    const auto child = Spawn(options);
    ::_exit(child ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  ASSERT_EQ(status, 0);
  // The end of the pipe comes when the last holder, sleep, is gone.
  EXPECT_EQ(ReadToEnd(pipe), "");
}

TEST(Process, IsSignalledAndWaitedForThroughItsPidfd) {
  const Process process = *Spawn({.program = "/bin/sleep", .arguments = {"sleep", "1000"}});
  EXPECT_FALSE(process.Poll()->has_value());
  EXPECT_FALSE(process.Wait(std::chrono::milliseconds(1))->has_value());
  ASSERT_TRUE(process.Send(SIGINT));
  EXPECT_EQ(process.Wait(seconds(20))->value().signal, SIGINT);
  EXPECT_EQ(process.Send(SIGINT).error().code(), Code::kNotFound);
  EXPECT_FALSE(process.Wait(seconds(20)));  // reaped already
}

TEST(DieWithParent, RefusesWhenTheParentIsAnother) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool mine = DieWithParent(SIGKILL, ::getppid()).has_value();
    const auto foreign = DieWithParent(SIGKILL, 1 << 22);
    ::_exit(mine && !foreign && foreign.error().code() == Code::kPrecondition ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Describe, NamesCodesAndSignals) {
  EXPECT_EQ(Describe({.code = 3}), "exit code 3");
  EXPECT_EQ(Describe({.signal = SIGKILL}), "killed by SIGKILL");
  EXPECT_EQ(Describe({.signal = SIGSEGV, .dumped = true}), "killed by SIGSEGV (core dumped)");
}

class FindProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/muster_find_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { (void)PosixFiles().RemoveAll(folder_); }
  void Put(const std::string& name, unsigned mode) {
    ASSERT_TRUE(PosixFiles().Create(folder_ + "/" + name, {.mode = mode}));
  }
  std::string folder_;
};

TEST_F(FindProgramTest, SearchesTheFoldersInOrder) {
  ASSERT_TRUE(PosixFiles().MakeDirectory(folder_ + "/b", 0755));
  Put("tool", 0755);
  Put("b/tool", 0755);
  EXPECT_EQ(*FindProgram("tool", "/no/such:" + folder_ + "/b:" + folder_), folder_ + "/b/tool");
  EXPECT_EQ(*FindProgram(folder_ + "/tool", ""), folder_ + "/tool");
}

TEST_F(FindProgramTest, SaysWhatIsWrong) {
  EXPECT_EQ(FindProgram("tool", folder_).error().code(), Code::kNotFound);
  EXPECT_EQ(FindProgram("", folder_).error().code(), Code::kInvalid);
  EXPECT_EQ(FindProgram(folder_, folder_).error().code(), Code::kInvalid);
  Put("tool", 0644);
  EXPECT_EQ(FindProgram("tool", folder_).error().code(), Code::kDenied);
  EXPECT_EQ(FindProgram(folder_ + "/tool", "").error().code(), Code::kDenied);
}

}  // namespace
}  // namespace muster::os

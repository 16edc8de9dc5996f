#include "os/map_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace muster::os {
namespace {

constexpr std::size_t kPages = 8;

std::size_t Page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// A mapped file of eight pages of 'x'.
class Mapped {
 public:
  Mapped() {
    std::string path = testing::TempDir() + "/muster_map_guard_XXXXXX";
    fd_ = Fd(::mkstemp(path.data()));
    ::unlink(path.c_str());
    const std::string content(kPages * Page(), 'x');
    EXPECT_EQ(::write(fd_.get(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
    void* at = ::mmap(nullptr, content.size(), PROT_READ, MAP_SHARED, fd_.get(), 0);
    EXPECT_NE(at, MAP_FAILED);
    at_ = static_cast<const volatile char*>(at);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { ::munmap(const_cast<char*>(at_), bytes()); }
  std::size_t bytes() const { return kPages * Page(); }
  MapGuard Guard() const { return {const_cast<const char*>(at_), bytes()}; }
  void Cut(std::size_t pages) const {
    EXPECT_EQ(::ftruncate(fd_.get(), static_cast<off_t>(pages * Page())), 0);
  }
  char At(std::size_t page) const { return at_[page * Page() + 7]; }

 private:
  Fd fd_;
  const volatile char* at_ = nullptr;
};

TEST(MapGuard, APageThatIsGoneIsZerosAndTold) {
  const Mapped file;
  const MapGuard guard = file.Guard();
  EXPECT_EQ(file.At(7), 'x');
  EXPECT_FALSE(guard.lost());
  EXPECT_FALSE(guard.lost_at());
  file.Cut(3);
  EXPECT_EQ(file.At(2), 'x');
  EXPECT_FALSE(guard.lost());
  EXPECT_EQ(file.At(5), '\0');
  EXPECT_TRUE(guard.lost());
  EXPECT_EQ(guard.lost_at(), 5 * Page() + 7);
  EXPECT_EQ(file.At(7), '\0');
  EXPECT_EQ(file.At(3), '\0');
  EXPECT_EQ(file.At(2), 'x');
  EXPECT_EQ(guard.lost_at(), 5 * Page() + 7) << "the first that was missed";
}

TEST(MapGuard, OnlyTheMappingThatLostAPageIsMarked) {
  const Mapped file;
  const Mapped other;
  const MapGuard mine = file.Guard();
  MapGuard theirs = other.Guard();
  file.Cut(0);
  EXPECT_EQ(file.At(0), '\0');
  EXPECT_TRUE(mine.lost());
  EXPECT_FALSE(theirs.lost());
  const MapGuard moved = std::move(theirs);
  other.Cut(0);
  EXPECT_EQ(other.At(0), '\0');
  EXPECT_TRUE(moved.lost());
}

TEST(MapGuard, ASlotThatIsUsedAgainIsNotLostYet) {
  for (int round = 0; round < 3; ++round) {
    const Mapped file;
    const MapGuard guard = file.Guard();
    EXPECT_FALSE(guard.lost());
    file.Cut(1);
    EXPECT_EQ(file.At(1), '\0');
    EXPECT_TRUE(guard.lost());
  }
}

TEST(MapGuard, NoThreadTakesZerosForTheFile) {
  for (int round = 0; round < 20; ++round) {
    const Mapped file;
    const MapGuard guard = file.Guard();
    std::atomic<int> wrong = 0;
    std::atomic<int> ready = 0;
    {
      std::vector<std::jthread> readers;
      for (std::size_t reader = 0; reader < 4; ++reader) {
        readers.emplace_back([&, reader] {
          ++ready;
          for (std::size_t page = reader;; page = (page + 1) % kPages) {
            const char seen = file.At(page);
            if (guard.lost()) return;
            if (seen != 'x') ++wrong;
          }
        });
      }
      while (ready < 4) std::this_thread::yield();
      file.Cut(static_cast<std::size_t>(round) % kPages);
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST(MapGuard, GuardsComeAndGoWhileOthersFault) {
  std::atomic<bool> stop = false;
  std::jthread churn([&] {
    const Mapped file;
    while (!stop) {
      const MapGuard one = file.Guard();
      const MapGuard two = file.Guard();
    }
  });
  for (int round = 0; round < 50; ++round) {
    const Mapped file;
    const MapGuard guard = file.Guard();
    file.Cut(0);
    EXPECT_EQ(file.At(4), '\0');
    EXPECT_TRUE(guard.lost());
  }
  stop = true;
}

TEST(MapGuardDeathTest, WhatIsNotGuardedStillEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fault = [] {
    const Mapped guarded;
    const MapGuard guard = guarded.Guard();
    const Mapped plain;
    plain.Cut(0);
    std::exit(plain.At(0) == '\0' ? 0 : 0);
  };
  EXPECT_DEATH(fault(), "");
}

TEST(MapGuardDeathTest, ASignalThatSomebodySendsIsNotMended) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto send = [] {
    const Mapped guarded;
    const MapGuard guard = guarded.Guard();
    ::raise(SIGBUS);
    std::exit(0);
  };
  EXPECT_DEATH(send(), "");
}

TEST(MapGuardDeathTest, WhoHadTheSignalBeforeGetsWhatIsNotGuarded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fault = [] {
    struct sigaction theirs{};
    theirs.sa_sigaction = [](int, siginfo_t*, void*) { ::_exit(77); };
    theirs.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &theirs, nullptr);
    const Mapped guarded;
    const MapGuard guard = guarded.Guard();
    guarded.Cut(0);
    if (guarded.At(0) != '\0' || !guard.lost()) ::_exit(1);
    const Mapped plain;
    plain.Cut(0);
    ::_exit(plain.At(0) == '\0' ? 2 : 3);
  };
  EXPECT_EXIT(fault(), testing::ExitedWithCode(77), "");
}

}  // namespace
}  // namespace muster::os

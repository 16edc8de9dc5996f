#include "os/recovery_link.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "os/memfd.h"

namespace muster::os {
namespace {

TEST(RecoveryLink, CarriesAWorkerIntoTheNextGeneration) {
  auto [host, end] = *RecoveryHost::Create();
  RecoveryLink link(std::move(end));
  EXPECT_FALSE(*host.Receive());
  ASSERT_TRUE(link.Ready());
  const auto ready = *host.Receive();
  ASSERT_TRUE(ready);
  EXPECT_FALSE(ready->quiesced);

  const Fd arena = *CreateMemfd("arena", 4_KiB);
  ASSERT_TRUE(host.Commit(Generation(7), arena.get()));
  const auto commit = link.Quiesce({.applied = 12, .durable = 10});
  ASSERT_TRUE(commit);
  EXPECT_EQ(commit->generation, Generation(7));
  EXPECT_NE(commit->arena.get(), arena.get());
  EXPECT_TRUE(MapMemfd(commit->arena.get(), 4_KiB, MapAccess::kReadWrite));
  EXPECT_NE(::fcntl(commit->arena.get(), F_GETFD) & FD_CLOEXEC, 0);
  const auto quiesced = *host.Receive();
  ASSERT_TRUE(quiesced && quiesced->quiesced);
  EXPECT_EQ(quiesced->quiesced->applied, 12U);
  EXPECT_EQ(quiesced->quiesced->durable, 10U);
}

TEST(RecoveryLink, TellsAWorkerThatItsHostHasNoUseForIt) {
  auto [host, end] = *RecoveryHost::Create();
  RecoveryLink link(std::move(end));
  RecoveryHost* const ours = &host;
  std::thread close([ours] { const RecoveryHost gone = std::move(*ours); });
  const auto commit = link.Quiesce({});
  close.join();
  ASSERT_FALSE(commit);
  EXPECT_EQ(commit.error().code(), Code::kUnavailable);
}

TEST(RecoveryLink, TellsAHostThatTheWorkerIsGoneBehindWhatItSaid) {
  auto [host, end] = *RecoveryHost::Create();
  ASSERT_TRUE(RecoveryLink(std::move(end)).Ready());
  EXPECT_TRUE(*host.Receive());
  EXPECT_EQ(host.Receive().error().code(), Code::kUnavailable);
  EXPECT_EQ(host.Commit(Generation(1), STDIN_FILENO).error().code(), Code::kUnavailable);
}

TEST(RecoveryLink, DropsWhatIsNoMessage) {
  auto [host, end] = *RecoveryHost::Create();
  const std::string packets[] = {"x", std::string(24, 'x'), std::string(100, '\0')};
  for (const std::string& packet : packets) {
    ASSERT_EQ(::send(end.get(), packet.data(), packet.size(), 0),
              static_cast<ssize_t>(packet.size()));
    EXPECT_EQ(host.Receive().error().code(), Code::kInvalid);
  }
  EXPECT_FALSE(*host.Receive());
}

TEST(RecoveryLink, WithoutAHostSaysNothing) {
  RecoveryLink link;
  EXPECT_FALSE(link.connected());
  EXPECT_TRUE(link.Ready());
}

}  // namespace
}  // namespace muster::os

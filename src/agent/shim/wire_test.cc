#include "agent/shim/wire.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "agent/zygote/python_zygote.h"
#include "base/fd.h"

namespace muster::agent::shim {
namespace {

struct Pair {
  Fd ours;
  Fd theirs;
};
Pair MakePair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

TEST(ReceivePacket, GivesWhatADeadPeerHadSentThoughItLeftPacketsOfOursUnread) {
  Pair pair = MakePair();
  const auto stop = Message<Stop>(Type::kStop);
  const auto exited = Message<Exited>(Type::kExited);
  ASSERT_EQ(SendPacket(pair.ours.get(), &stop, sizeof(stop), nullptr, 0), 0);
  ASSERT_EQ(SendPacket(pair.theirs.get(), &exited, sizeof(exited), nullptr, 0), 0);
  pair.theirs.Reset();
  Packet packet;
  ASSERT_EQ(ReceivePacket(pair.ours.get(), &packet), Receive::kPacket);
  EXPECT_EQ(packet.type(), Type::kExited);
  EXPECT_EQ(ReceivePacket(pair.ours.get(), &packet), Receive::kClosed);
}

/// The fork server for Python cannot include protocol.h.
TEST(PythonZygote, SpeaksTheVersionOfTheProtocol) {
  const std::string said = fmt::format("MAGIC, VERSION = 0x{:X}, {}\n", kMagic, kVersion);
  EXPECT_NE(kPythonZygote.find(said), std::string_view::npos) << said;
}

TEST(ReceivePacket, ADescriptorThatWasTakenIsNotClosed) {
  const Pair pair = MakePair();
  const auto spawn = Message<Spawn>(Type::kSpawn);
  const std::array<int, 2> sent{pair.ours.get(), pair.theirs.get()};
  ASSERT_EQ(SendPacket(pair.ours.get(), &spawn, sizeof(spawn), sent.data(), 2), 0);
  Packet packet;
  ASSERT_EQ(ReceivePacket(pair.theirs.get(), &packet), Receive::kPacket);
  ASSERT_EQ(packet.fd_count, 2U);
  const Fd taken(packet.Take(1));
  const int other = packet.fds[0];
  packet.CloseFds();
  EXPECT_NE(::fcntl(taken.get(), F_GETFD), -1);
  EXPECT_EQ(::fcntl(other, F_GETFD), -1);
}

}  // namespace
}  // namespace muster::agent::shim

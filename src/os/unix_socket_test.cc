#include "os/unix_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/file_system.h"

namespace muster::os {
namespace {

std::size_t OpenDescriptors() { return PosixFiles().List("/proc/self/fd")->size(); }

TEST(UnixSocket, KeepsPacketsWhole) {
  const SocketPair pair = *MakeSocketPair();
  ASSERT_TRUE(SendPacket(pair.first.get(), "one"));
  ASSERT_TRUE(SendPacket(pair.first.get(), std::string("t\0wo", 4)));
  EXPECT_EQ(ReceivePacket(pair.second.get())->bytes, "one");
  EXPECT_EQ(ReceivePacket(pair.second.get())->bytes, std::string("t\0wo", 4));
  EXPECT_EQ(ReceivePacket(pair.second.get())->kind, Received::Kind::kNothing);
}

TEST(UnixSocket, PassesDescriptorsThatDoNotLeakIntoPrograms) {
  const SocketPair pair = *MakeSocketPair();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd read(ends[0]);
  Fd write(ends[1]);
  const std::array<int, 2> sent{write.get(), read.get()};
  ASSERT_TRUE(SendPacket(pair.first.get(), "fds", sent));
  write.Reset();
  const Received received = *ReceivePacket(pair.second.get());
  ASSERT_EQ(received.fds.size(), 2u);
  EXPECT_TRUE(::fcntl(received.fds[0].get(), F_GETFD) & FD_CLOEXEC);
  ASSERT_EQ(::write(received.fds[0].get(), "x", 1), 1);
  char c = 0;
  ASSERT_EQ(::read(read.get(), &c, 1), 1);
  EXPECT_EQ(c, 'x');
}

TEST(UnixSocket, TellsAClosedEndFromAnEmptyOne) {
  SocketPair pair = *MakeSocketPair();
  ASSERT_TRUE(SendPacket(pair.first.get(), "last words"));
  pair.first.Reset();
  EXPECT_EQ(ReceivePacket(pair.second.get())->bytes, "last words");
  EXPECT_EQ(ReceivePacket(pair.second.get())->kind, Received::Kind::kClosed);
  const Status sent = SendPacket(pair.second.get(), "anyone?");
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Code::kUnavailable);
}

TEST(UnixSocket, IsClosedWhenThePeerDiedWithUnreadPackets) {
  SocketPair pair = *MakeSocketPair();
  ASSERT_TRUE(SendPacket(pair.second.get(), "never read"));
  pair.first.Reset();
  EXPECT_EQ(ReceivePacket(pair.second.get())->kind, Received::Kind::kClosed);
}

TEST(UnixSocket, HoldsTheLargestPacketAndRefusesMore) {
  const SocketPair pair = *MakeSocketPair();
  const std::string largest(static_cast<std::size_t>(kMaxPacket.count), 'x');
  ASSERT_TRUE(SendPacket(pair.first.get(), largest));
  EXPECT_EQ(ReceivePacket(pair.second.get())->bytes, largest);
  EXPECT_EQ(SendPacket(pair.first.get(), largest + "x").error().code(), Code::kInvalid);
  EXPECT_EQ(SendPacket(pair.first.get(), "").error().code(), Code::kInvalid);
  const std::vector<int> many(kMaxPacketFds + 1, 0);
  EXPECT_EQ(SendPacket(pair.first.get(), "x", many).error().code(), Code::kInvalid);
}

TEST(UnixSocket, SaysSoWhenTheOtherEndDoesNotKeepUp) {
  const SocketPair pair = *MakeSocketPair();
  Status sent = Ok();
  for (int i = 0; i < 10'000 && sent; ++i)
    sent = SendPacket(pair.first.get(), std::string(1000, 'x'));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Code::kUnavailable);
}

TEST(UnixSocket, DropsAHostilePacketWithAllItsDescriptors) {
  const SocketPair pair = *MakeSocketPair();
  const std::size_t before = OpenDescriptors();
  // By hand, what SendPacket refuses: more descriptors than the receiver has room for.
  std::vector<int> many(kMaxPacketFds + 40, pair.first.get());
  std::vector<std::byte> control(CMSG_SPACE(many.size() * sizeof(int)));
  char byte = 'x';
  iovec data{.iov_base = &byte, .iov_len = 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(many.size() * sizeof(int));
  std::copy(many.begin(), many.end(), reinterpret_cast<int*>(CMSG_DATA(part)));
  ASSERT_EQ(::sendmsg(pair.first.get(), &message, 0), 1);
  EXPECT_EQ(ReceivePacket(pair.second.get()).error().code(), Code::kInvalid);
  EXPECT_EQ(OpenDescriptors(), before);

  const std::string huge(static_cast<std::size_t>(kMaxPacket.count) + 1, 'x');
  ASSERT_GT(::send(pair.first.get(), huge.data(), huge.size(), 0), 0);
  EXPECT_EQ(ReceivePacket(pair.second.get()).error().code(), Code::kInvalid);
  ASSERT_TRUE(SendPacket(pair.first.get(), "still works"));
  EXPECT_EQ(ReceivePacket(pair.second.get())->bytes, "still works");
}

TEST(UnixSocket, KnowsItsPeer) {
  const SocketPair pair = *MakeSocketPair();
  const Peer peer = *PeerOf(pair.first.get());
  EXPECT_EQ(peer.pid, ::getpid());
  EXPECT_EQ(peer.uid, ::getuid());
  EXPECT_FALSE(PeerOf(-1));
}

}  // namespace
}  // namespace muster::os

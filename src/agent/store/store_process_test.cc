#include "agent/store/store_process.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "agent/store/job_store.h"

namespace muster::agent {
namespace {

Fd Dial(std::uint16_t port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) fd.Reset();
  return fd;
}

bool Closed(const Fd& client) {
  char byte;
  pollfd polled{client.get(), POLLIN, 0};
  return ::poll(&polled, 1, 10'000) == 1 && ::recv(client.get(), &byte, 1, 0) <= 0;
}

TEST(StoreProcess, KeepsTheStoreOfAGenerationUntilTheNext) {
  const Fd process = *StartStoreProcess();
  const auto first = *OpenStore(process.get(), Generation(1), "127.0.0.1");
  const Fd client = Dial(first);
  ASSERT_TRUE(client.valid());
  EXPECT_EQ(*OpenStore(process.get(), Generation(1), "127.0.0.1"), first);
  const auto second = *OpenStore(process.get(), Generation(2), "127.0.0.1");
  EXPECT_NE(second, first);
  EXPECT_TRUE(Closed(client));
  EXPECT_TRUE(Dial(second).valid());
  ASSERT_TRUE(CloseStore(process.get()));
  // Its answer to the next request comes behind the end of that store.
  ASSERT_TRUE(OpenStore(process.get(), Generation(3), "127.0.0.1"));
  EXPECT_FALSE(Dial(second).valid());
}

TEST(StoreProcess, SaysWhyAnAddressCannotBeHad) {
  const Fd process = *StartStoreProcess();
  const auto port = OpenStore(process.get(), Generation(1), "192.0.2.1");
  ASSERT_FALSE(port);
  EXPECT_NE(port.error().message().find("192.0.2.1"), std::string::npos) << port.error().message();
  EXPECT_TRUE(OpenStore(process.get(), Generation(1), "127.0.0.1"));
}

TEST(StoreProcess, EndsWhenNobodyHoldsIt) {
  Fd process = *StartStoreProcess();
  const auto port = *OpenStore(process.get(), Generation(1), "127.0.0.1");
  const Fd client = Dial(port);
  process.Reset();
  EXPECT_TRUE(Closed(client));
}

TEST(JobStore, ServesByItselfWhenTheProcessIsGone) {
  const auto loop = *os::EventLoop::Create();
  JobStore none(*loop, Fd());
  EXPECT_TRUE(Dial(*none.Open(Generation(1), "127.0.0.1")).valid());
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  Fd dead(pair[1]);
  JobStore store(*loop, Fd(pair[0]));
  dead.Reset();
  EXPECT_TRUE(Dial(*store.Open(Generation(1), "127.0.0.1")).valid());
  store.Close();
}

}  // namespace
}  // namespace muster::agent

#include "os/memfd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace muster::os {
namespace {

TEST(Memfd, IsSharedBetweenItsMappings) {
  const Fd fd = *CreateMemfd("test", Bytes{4096});
  const Mapping writer = *MapMemfd(fd.get(), Bytes{4096}, MapAccess::kReadWrite);
  const Mapping reader = *MapMemfd(fd.get(), Bytes{4096}, MapAccess::kRead);
  writer.data()[17] = std::byte{5};
  EXPECT_EQ(reader.data()[17], std::byte{5});
  EXPECT_EQ(reader.size(), 4096u);
}

TEST(Memfd, CannotBeResizedOrUnsealedByAnybody) {
  const Fd fd = *CreateMemfd("test", Bytes{4096});
  EXPECT_LT(::ftruncate(fd.get(), 0), 0);
  EXPECT_LT(::ftruncate(fd.get(), 8192), 0);
  EXPECT_LT(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_TRUE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC);
}

TEST(Memfd, OfAnotherSizeIsRefused) {
  const Fd fd = *CreateMemfd("test", Bytes{4096});
  const auto mapped = MapMemfd(fd.get(), Bytes{8192}, MapAccess::kRead);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code(), Code::kInvalid);
}

TEST(Memfd, WithoutSealsIsRefusedBecauseItCouldShrinkUnderUs) {
  const Fd fd(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), 4096), 0);
  const auto mapped = MapMemfd(fd.get(), Bytes{4096}, MapAccess::kRead);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code(), Code::kInvalid);
}

TEST(Memfd, RefusesDescriptorsThatAreNoMemfd) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(MapMemfd(null.get(), Bytes{4096}, MapAccess::kRead));
  EXPECT_FALSE(MapMemfd(-1, Bytes{4096}, MapAccess::kRead));
}

TEST(Memfd, NeedsASize) {
  EXPECT_FALSE(CreateMemfd("test", Bytes{0}));
  EXPECT_FALSE(CreateMemfd("test", Bytes{-1}));
}

TEST(Mapping, MovesItsOwnership) {
  const Fd fd = *CreateMemfd("test", Bytes{4096});
  Mapping first = *MapMemfd(fd.get(), Bytes{4096}, MapAccess::kReadWrite);
  first.data()[0] = std::byte{1};
  Mapping second = std::move(first);
  EXPECT_EQ(second.data()[0], std::byte{1});
  first = std::move(second);
  EXPECT_EQ(first.data()[0], std::byte{1});
}

}  // namespace
}  // namespace muster::os

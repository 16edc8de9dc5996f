#include "net/address.h"

#include <gmock/gmock.h>

#include "net/local_access.h"

namespace muster::net {
namespace {

using testing::HasSubstr;

std::string Why(const auto& result) { return result ? "" : result.error().ToString(); }

TEST(ParseAddressTest, ReadsNamesAndAddressesWithAPort) {
  EXPECT_EQ(*ParseAddress("Node-7.cluster:7070"), (Address{"node-7.cluster", 7070}));
  EXPECT_EQ(*ParseAddress("10.0.0.7:65535"), (Address{"10.0.0.7", 65535}));
  EXPECT_EQ(*ParseAddress("[::1]:80"), (Address{"::1", 80}));
  EXPECT_EQ(*ParseAddress("[2001:DB8:0:0::1]:80"), (Address{"2001:db8::1", 80}));
  EXPECT_EQ(*ParseAddress("0.0.0.0:0", PortZero::kFreePort), (Address{"0.0.0.0", 0}));
}

TEST(ParseAddressTest, FormatsWhatItReads) {
  for (const char* text : {"a:1", "10.0.0.7:7070", "[::1]:80", "[2001:db8::1]:443", "a.b.:9"}) {
    EXPECT_EQ(FormatAddress(*ParseAddress(text)), text);
  }
}

TEST(ParseAddressTest, ExplainsWhatIsNearlyRight) {
  EXPECT_THAT(Why(ParseAddress("node7")), HasSubstr("the port is missing"));
  EXPECT_THAT(Why(ParseAddress("node7:")), HasSubstr("the port is missing"));
  EXPECT_THAT(Why(ParseAddress(":80")), HasSubstr("the host is missing"));
  EXPECT_THAT(Why(ParseAddress("::1:8080")), HasSubstr("write [::1:8080]:PORT"));
  EXPECT_THAT(Why(ParseAddress("1:2:3:4:5:6:7:8:8080")), HasSubstr("write [1:2:3:4:5:6:7:8]:8080"));
  EXPECT_THAT(Why(ParseAddress("http://node7:80/x")), HasSubstr("write 'node7:80' alone"));
  EXPECT_THAT(Why(ParseAddress("node7:80/x")), HasSubstr("a path"));
  EXPECT_THAT(Why(ParseAddress("node7:http")), HasSubstr("'http' is no port number"));
  EXPECT_THAT(Why(ParseAddress("node7:70000")), HasSubstr("above 65535"));
  EXPECT_THAT(Why(ParseAddress("node7:99999999999999999999")), HasSubstr("above 65535"));
  EXPECT_THAT(Why(ParseAddress("node7:0")), HasSubstr("port 0"));
  EXPECT_THAT(Why(ParseAddress("256.1.1.1:80")), HasSubstr("no IPv4 address"));
  EXPECT_THAT(Why(ParseAddress("10.0.1:80")), HasSubstr("no IPv4 address"));
  EXPECT_THAT(Why(ParseAddress("[::1:80")), HasSubstr("']' is missing"));
  EXPECT_THAT(Why(ParseAddress("[::1]80")), HasSubstr("':' and a port"));
  EXPECT_THAT(Why(ParseAddress("[fe80::1%eth0]:80")), HasSubstr("zones"));
  EXPECT_THAT(Why(ParseAddress("a b:80")), HasSubstr("spaces"));
  EXPECT_THAT(Why(ParseAddress("a..b:80")), HasSubstr("two dots"));
  EXPECT_THAT(Why(ParseAddress("-a:80")), HasSubstr("'-'"));
  EXPECT_THAT(Why(ParseAddress("")), HasSubstr("it is empty"));
  EXPECT_THAT(Why(ParseAddress("a:b:80")), HasSubstr("more than one ':'"));
  EXPECT_FALSE(ParseAddress("user@node7:80"));
  EXPECT_FALSE(
      ParseAddress("n\xc3\xb6"
                   "de:80"));
  EXPECT_FALSE(ParseAddress(std::string(300, 'a') + ":80"));
}

TEST(ParseUrlTest, ReadsAndFormats) {
  EXPECT_EQ(*ParseUrl("HTTPS://Node7/v1?x=1"), (Url{true, {"node7", 443}, "/v1?x=1"}));
  EXPECT_EQ(*ParseUrl("http://[::1]:8080"), (Url{false, {"::1", 8080}, "/"}));
  EXPECT_EQ(*ParseUrl("http://a?b"), (Url{false, {"a", 80}, "/?b"}));
  EXPECT_EQ(FormatUrl(*ParseUrl("http://[::1]:8080/a/b")), "http://[::1]:8080/a/b");
  for (const char* bad : {"node7:80", "ftp://a/", "http://", "http://u:p@a/", "http://a/#x",
                          "http://a:0/", "http://a b/"}) {
    EXPECT_FALSE(ParseUrl(bad)) << bad;
  }
}

TEST(ParseUrlTest, NeverShowsAPassword) {
  EXPECT_THAT(Why(ParseUrl("http://u:secret@a/")), testing::Not(HasSubstr("secret")));
}

TEST(LoopbackTest, IsThisHostOnly) {
  for (const char* text : {"localhost:1", "127.0.0.1:1", "127.8.9.1:1", "[::1]:1"}) {
    EXPECT_TRUE(IsLoopback(*ParseAddress(text))) << text;
  }
  for (const char* text : {"127.evil.example:1", "10.0.0.1:1", "localhost.evil:1", "[::]:1"}) {
    EXPECT_FALSE(IsLoopback(*ParseAddress(text))) << text;
  }
}

Status Check(std::vector<Header> headers) {
  return CheckLocalAccess({.headers = std::move(headers)}, 8080, false);
}

TEST(LocalAccessTest, TakesThisHostAndItsOwnPages) {
  EXPECT_TRUE(Check({{"host", "localhost:8080"}}));
  EXPECT_TRUE(Check({{"Host", "127.0.0.1:8080"}, {"Origin", "http://localhost:8080"}}));
  EXPECT_TRUE(CheckLocalAccess({.headers = {{"Host", "[::1]"}}}, 443, true));
}

TEST(LocalAccessTest, RefusesReboundNamesAndOtherPages) {
  EXPECT_FALSE(Check({}));
  EXPECT_FALSE(Check({{"Host", "evil.example:8080"}}));
  EXPECT_FALSE(Check({{"Host", "localhost:9"}}));
  EXPECT_FALSE(Check({{"Host", "localhost:8080"}, {"Host", "localhost:8080"}}));
  EXPECT_FALSE(Check({{"Host", "localhost:8080"}, {"Origin", "http://evil.example"}}));
  EXPECT_FALSE(Check({{"Host", "localhost:8080"}, {"Origin", "https://localhost:8080"}}));
  EXPECT_FALSE(Check({{"Host", "localhost:8080"}, {"Origin", "null"}}));
}

}  // namespace
}  // namespace muster::net

// What a server must stand: raw bytes over a socket, in the one loop.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "net/http_server.h"
#include "net/turn_loop_test.h"

namespace muster::net {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

/// A client that says what it is told and reads when it is told.
class RawPeer {
 public:
  explicit RawPeer(const Address& to) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(to.port);
    ::inet_pton(AF_INET, to.host.c_str(), &address.sin_addr);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  /// How many bytes the kernel took; less than all where the server does not read.
  std::size_t Say(std::string_view text) {
    const auto sent = ::send(socket_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }
  /// Takes what has come; false when the connection is at its end.
  bool Hear() {
    for (;;) {
      std::array<char, 65536> bytes{};
      const auto count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count < 0 && errno == EAGAIN) return true;
      if (count <= 0) return false;
      heard.append(bytes.data(), static_cast<std::size_t>(count));
    }
  }
  void Close() { socket_.Reset(); }
  std::string heard;

 private:
  Fd socket_;
};

class Hostile : public testing::Test {
 protected:
  void Serve(ServerOptions options) {
    server_ = *HttpServer::Listen(*loop_, std::move(options));
    server_->Handle(Method::kPost, "/echo", [this](const Request& request) -> Result<Response> {
      most_held_ = std::max(most_held_, request.body.size());
      return Response{.body = request.body};
    });
    server_->Handle(Method::kGet, "/large", [](const Request&) -> Result<Response> {
      return Response{.body = std::string(64 << 20, 'l')};
    });
    server_->HandleEvents("/events", [this](const Request&, EventStream stream) -> Status {
      streams_.push_back(std::move(stream));
      return Ok();
    });
  }
  bool TurnUntilClosed(RawPeer& peer) {
    return TurnUntil(*loop_, [&] { return !peer.Hear(); });
  }
  void TurnFor(milliseconds time) {
    bool over = false;
    loop_->After(time, [&over] { over = true; });
    EXPECT_TRUE(TurnUntil(*loop_, [&] { return over; }));
  }

  std::unique_ptr<os::EventLoop> loop_ = *os::EventLoop::Create();
  std::vector<EventStream> streams_;
  std::unique_ptr<HttpServer> server_;
  std::size_t most_held_ = 0;
};

TEST_F(Hostile, ASlowLorisIsClosedHoweverBusyItLooks) {
  Serve({.request_timeout = milliseconds(200)});
  RawPeer head(server_->address());
  RawPeer body(server_->address());
  head.Say("GET /events HTTP/1.1\r\nHost: x\r\n");
  body.Say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  bool head_open = true;
  bool body_open = true;
  const bool closed = TurnUntil(*loop_, [&] {
    if (head_open) head.Say("X: y\r\n");  // a header or a byte with every turn
    if (body_open) body.Say("b");
    head_open = head_open && head.Hear();
    body_open = body_open && body.Hear();
    TurnFor(milliseconds(10));
    return !head_open && !body_open;
  });
  EXPECT_TRUE(closed);
  EXPECT_EQ(server_->counters().timed_out, 2U);
  EXPECT_EQ(server_->counters().connections, 0U);
}

TEST_F(Hostile, AConnectionThatSaysNothingIsClosed) {
  Serve({.request_timeout = milliseconds(200)});
  RawPeer peer(server_->address());
  EXPECT_TRUE(TurnUntilClosed(peer));
  EXPECT_EQ(peer.heard, "");
}

TEST_F(Hostile, AnAnswerThatIsNotTakenEndsTheConnection) {
  Serve({.request_timeout = milliseconds(200)});
  RawPeer peer(server_->address());
  peer.Say("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(TurnUntil(*loop_, [&] {
    return server_->counters().requests == 1 && server_->counters().connections == 0;
  }));
  EXPECT_EQ(server_->counters().timed_out, 1U);
}

TEST_F(Hostile, AHundredMegabytesAreRefusedByTheirHead) {
  Serve({});
  RawPeer peer(server_->address());
  peer.Say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n");
  EXPECT_TRUE(TurnUntilClosed(peer));
  EXPECT_THAT(peer.heard, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(peer.heard, HasSubstr("a body of 104857600 bytes is too large"));
  EXPECT_EQ(most_held_, 0U);
}

TEST_F(Hostile, AHundredMegabytesInChunksAreCutOff) {
  Serve({});
  RawPeer peer(server_->address());
  std::string chunk = "10000\r\n" + std::string(0x10000, 'c') + "\r\n";
  std::string unsent =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk;
  std::size_t said = 0;
  EXPECT_TRUE(TurnUntil(*loop_, [&] {
    const std::size_t sent = peer.Say(unsent);
    said += sent;
    unsent.erase(0, sent);
    if (unsent.empty()) unsent = chunk;
    return !peer.Hear();
  }));
  EXPECT_LT(said, 20U << 20);  // a little over the limit, and what the kernel's buffers hold
  EXPECT_EQ(most_held_, 0U);
}

TEST_F(Hostile, AHeadThatIsTooLargeIsRefused) {
  Serve({});
  for (const std::size_t size : {20'000U, 200'000U}) {
    RawPeer peer(server_->address());
    peer.Say("GET /large HTTP/1.1\r\nHost: x\r\nA: " + std::string(size, 'a') + "\r\n\r\n");
    EXPECT_TRUE(TurnUntil(*loop_, [&] { return !peer.Hear() || peer.heard.size() > 20; }));
    EXPECT_THAT(peer.heard, StartsWith("HTTP/1.1 431 ")) << size;
  }
}

TEST_F(Hostile, BytesThatAreNoHttpEndTheConnection) {
  Serve({});
  const std::string binary("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n\0\0", 13);
  for (const std::string& text :
       {std::string("\r\n\r\nnonsense\r\n\r\n"), binary, std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string("GET /x HTTP/1.1\r\n\r\n")}) {
    RawPeer peer(server_->address());
    peer.Say(text);
    EXPECT_TRUE(TurnUntil(*loop_, [&] { return !peer.Hear() || peer.heard.size() > 12; }));
    EXPECT_TRUE(peer.heard.empty() || peer.heard.starts_with("HTTP/1.1 4") ||
                peer.heard.starts_with("HTTP/1.0 4") || peer.heard.starts_with("HTTP/1.1 5"))
        << peer.heard;
  }
}

TEST_F(Hostile, AnUnknownMethodIsRefused) {
  Serve({});
  RawPeer peer(server_->address());
  peer.Say("BREW /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(TurnUntil(*loop_, [&] { return !peer.Hear() || peer.heard.size() > 12; }));
  EXPECT_THAT(peer.heard, StartsWith("HTTP/1.1 501 "));
}

TEST_F(Hostile, AReaderThatNeverReadsIsCutOffAtABoundedQueue) {
  Serve({.max_stream_queue = 256_KiB});
  RawPeer peer(server_->address());
  peer.Say("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return streams_.size() == 1; }));
  std::optional<StreamEnd> end;
  streams_[0].OnEnd([&end](StreamEnd how) { end = how; });
  const SharedFrame frame = ShareEvent({.data = std::string(100'000, 'f')});
  std::size_t most = 0;
  EXPECT_TRUE(TurnUntil(*loop_, [&] {
    if (streams_[0].open()) [[maybe_unused]]
      const Status sent = streams_[0].Send(frame);
    most = std::max(most, streams_[0].queued_bytes());
    return end.has_value();
  }));
  EXPECT_EQ(end, StreamEnd::kSlowReader);
  EXPECT_LE(most, 256U << 10);
  EXPECT_EQ(server_->counters().slow_readers, 1U);
  EXPECT_EQ(server_->counters().streams, 0U);
}

TEST_F(Hostile, AReaderThatStallsIsGivenUp) {
  Serve({.max_stream_queue = 64_MiB, .stall_timeout = std::chrono::seconds(1)});
  RawPeer peer(server_->address());
  peer.Say("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return streams_.size() == 1; }));
  std::optional<StreamEnd> end;
  streams_[0].OnEnd([&end](StreamEnd how) { end = how; });
  ASSERT_TRUE(streams_[0].Send({.data = std::string(32 << 20, 'f')}));
  EXPECT_TRUE(TurnUntil(*loop_, [&] { return end.has_value(); }));
  EXPECT_EQ(server_->counters().streams, 0U);
}

TEST_F(Hostile, MoreConnectionsThanAllowedWait) {
  Serve({.max_connections = 2, .request_timeout = milliseconds(200)});
  RawPeer first(server_->address());
  RawPeer second(server_->address());
  RawPeer third(server_->address());
  third.Say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
  EXPECT_TRUE(TurnUntilClosed(third));
  EXPECT_THAT(third.heard, HasSubstr("\r\n\r\nhi"));
  EXPECT_LE(server_->counters().connections, 2U);
}

TEST_F(Hostile, PipelinedRequestsAreAnsweredInOrder) {
  Serve({});
  RawPeer peer(server_->address());
  peer.Say(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none"
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\ntwo");
  EXPECT_TRUE(TurnUntilClosed(peer));
  EXPECT_LT(peer.heard.find("\r\n\r\none"), peer.heard.find("\r\n\r\ntwo"));
}

}  // namespace
}  // namespace muster::net

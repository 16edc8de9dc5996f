// Our TLS server and client, and a server that records what a client says to it.
#include <gmock/gmock.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "net/http_client.h"
#include "net/http_server.h"
#include "net/listen_socket.h"
#include "net/turn_loop_test.h"

namespace muster::net {
namespace {

using testing::HasSubstr;
using testing::Not;

TlsIdentity Identity() { return *MakeTlsIdentity("muster test", SystemClock().Wall()); }

/// Takes one TLS connection with OpenSSL and keeps every decrypted byte of it.
class RecordingServer {
 public:
  RecordingServer(os::EventLoop& loop, const TlsIdentity& identity)
      : loop_(loop), context_(::SSL_CTX_new(::TLS_server_method())) {
    BIO* certificate = ::BIO_new_mem_buf(identity.certificate_pem.data(), -1);
    BIO* key = ::BIO_new_mem_buf(identity.key_pem.data(), -1);
    X509* x509 = ::PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
    EVP_PKEY* pkey = ::PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
    ::SSL_CTX_use_certificate(context_, x509);
    ::SSL_CTX_use_PrivateKey(context_, pkey);
    ::X509_free(x509);
    ::EVP_PKEY_free(pkey);
    ::BIO_free(certificate);
    ::BIO_free(key);
    auto opened = *OpenListenSocket({"127.0.0.1", 0});
    address_ = opened.address;
    listening_ = std::move(opened.fd);
    watch_ = *loop_.Watch(listening_.get(), EPOLLIN, [this](std::uint32_t) { Accept(); });
  }
  ~RecordingServer() {
    loop_.Remove(watch_);
    if (peer_watch_) loop_.Remove(*peer_watch_);
    ::SSL_free(ssl_);
    ::SSL_CTX_free(context_);
  }

  std::string Url() const { return "https://" + FormatAddress(address_) + "/x"; }
  const std::string& heard() const { return heard_; }
  bool over() const { return over_; }

 private:
  void Accept() {
    socket_.Reset(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    ssl_ = ::SSL_new(context_);
    ::SSL_set_fd(ssl_, socket_.get());
    peer_watch_ = *loop_.Watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { Read(); });
  }
  void Read() {
    ::ERR_clear_error();
    if (!::SSL_is_init_finished(ssl_)) {
      const int shaken = ::SSL_accept(ssl_);
      if (shaken != 1) return Look(shaken);
    }
    for (;;) {
      std::array<char, 4096> bytes{};
      const int count = ::SSL_read(ssl_, bytes.data(), bytes.size());
      if (count <= 0) return Look(count);
      heard_.append(bytes.data(), static_cast<std::size_t>(count));
      const std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
      if (heard_.ends_with("\r\n\r\n")) ::SSL_write(ssl_, answer.data(), int(answer.size()));
    }
  }
  void Look(int result) {
    if (::SSL_get_error(ssl_, result) == SSL_ERROR_WANT_READ) return;
    over_ = true;
    loop_.Remove(*std::exchange(peer_watch_, std::nullopt));
    socket_.Reset();
  }

  os::EventLoop& loop_;
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
  Address address_;
  Fd listening_;
  Fd socket_;
  os::WatchId watch_;
  std::optional<os::WatchId> peer_watch_;
  std::string heard_;
  bool over_ = false;
};

class Tls : public testing::Test {
 protected:
  Result<Response> Ask(HttpClient& client, ClientRequest request) {
    std::optional<Result<Response>> got;
    client.Send(std::move(request), [&got](Result<Response> answer) { got = std::move(answer); });
    EXPECT_TRUE(TurnUntil(*loop_, [&] { return got.has_value(); }));
    return got ? std::move(*got) : Error(Code::kBug, "no answer");
  }
  std::unique_ptr<HttpClient> Client(ClientOptions options) {
    return *HttpClient::Create(*loop_, std::move(options));
  }

  std::unique_ptr<os::EventLoop> loop_ = *os::EventLoop::Create();
};

TEST_F(Tls, TheRightFingerprintHearsTheToken) {
  const TlsIdentity identity = Identity();
  RecordingServer server(*loop_, identity);
  const JoinToken token = JoinToken::Random();
  const auto client = Client({.pin = identity.fingerprint, .token = token});
  const auto answer = Ask(*client, {.url = server.Url()});
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_THAT(server.heard(), HasSubstr("Authorization: Bearer " + token.Reveal() + "\r\n"));
}

TEST_F(Tls, AWrongFingerprintHearsNotAByte) {
  RecordingServer server(*loop_, Identity());
  const Fingerprint expected = Identity().fingerprint;
  const auto client = Client({.pin = expected, .token = JoinToken::Random()});
  const auto answer = Ask(*client, {.url = server.Url(), .retry = {.attempts = 3}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kDenied);
  EXPECT_THAT(answer.error().message(), HasSubstr("expected was " + expected.ToString()));
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return server.over(); }));
  EXPECT_EQ(server.heard(), "");
}

TEST_F(Tls, WithoutAPinASelfSignedCertificateIsRefused) {
  RecordingServer server(*loop_, Identity());
  const auto client = Client({.token = JoinToken::Random()});
  const auto answer = Ask(*client, {.url = server.Url()});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kDenied);
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return server.over(); }));
  EXPECT_EQ(server.heard(), "");
}

TEST_F(Tls, APinnedServerIsNotAskedInPlainText) {
  const auto client = Client({.pin = Identity().fingerprint});
  EXPECT_EQ(Ask(*client, {.url = "http://127.0.0.1:9/"}).error().code(), Code::kInvalid);
}

TEST_F(Tls, CarriesRequestsAndEvents) {
  const TlsIdentity identity = Identity();
  const JoinToken token = JoinToken::Random();
  const auto server = *HttpServer::Listen(*loop_, {.tls = identity, .token = token});
  std::vector<EventStream> streams;
  server->Handle(Method::kPost, "/echo", [](const Request& request) -> Result<Response> {
    return Response{.body = request.body};
  });
  server->HandleEvents("/events", [&](const Request&, EventStream stream) -> Status {
    streams.push_back(std::move(stream));
    return Ok();
  });
  const std::string base = "https://" + FormatAddress(server->address());
  const auto client = Client({.pin = identity.fingerprint, .token = token});
  const std::string body(500'000, 'b');
  for (int i = 0; i < 3; ++i) {
    const auto answer =
        Ask(*client, {.method = Method::kPost, .url = base + "/echo", .body = body});
    ASSERT_TRUE(answer) << answer.error().ToString();
    EXPECT_EQ(answer->body, body);
  }
  EXPECT_EQ(server->counters().accepted, 1U);
  std::vector<Event> events;
  std::optional<Error> end;
  client->Listen({.url = base + "/events"},
                 {.on_event = [&](const Event& event) { events.push_back(event); },
                  .on_end = [&](const Error& error) { end = error; }});
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return streams.size() == 1; }));
  const std::string large(400'000, 'e');
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(streams[0].Send({.data = large}));
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return events.size() == 3 || end; }));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[2].data, large);
  streams.clear();
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return end.has_value(); }));
  EXPECT_THAT(end->message(), HasSubstr("the server ended the event stream"));
}

TEST_F(Tls, AReaderThatLeavesInTheMidstHurtsNobody) {
  const TlsIdentity identity = Identity();
  const auto server = *HttpServer::Listen(*loop_, {.tls = identity, .max_stream_queue = 64_MiB});
  std::vector<EventStream> streams;
  server->HandleEvents("/events", [&](const Request&, EventStream stream) -> Status {
    streams.push_back(std::move(stream));
    return Ok();
  });
  const auto client = Client({.pin = identity.fingerprint});
  const std::string url = "https://" + FormatAddress(server->address()) + "/events";
  for (std::size_t round = 0; round < 5; ++round) {
    const CallId call =
        client->Listen({.url = url}, {.on_event = [](const Event&) {}, .on_end = [](auto&) {}});
    ASSERT_TRUE(TurnUntil(*loop_, [&] { return streams.size() == round + 1; }));
    std::optional<StreamEnd> end;
    streams[round].OnEnd([&end](StreamEnd how) { end = how; });
    ASSERT_TRUE(streams[round].Send({.data = std::string(8 << 20, 'x')}));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(loop_->RunOnce(std::chrono::milliseconds(1)));
    client->Cancel(call);
    ASSERT_TRUE(TurnUntil(*loop_, [&] { return end.has_value(); }));
    EXPECT_EQ(end, StreamEnd::kPeerGone);
  }
}

TEST_F(Tls, AServerThatWasStartedAnewIsAnotherOne) {
  const TlsIdentity identity = Identity();
  auto server = *HttpServer::Listen(*loop_, {.tls = identity});
  const Address address = server->address();
  const std::string url = "https://" + FormatAddress(address) + "/";
  const auto client = Client({.pin = identity.fingerprint});
  EXPECT_EQ(Ask(*client, {.url = url})->status, 404);
  server.reset();
  server = *HttpServer::Listen(*loop_, {.address = address, .tls = Identity()});
  EXPECT_EQ(Ask(*client, {.url = url}).error().code(), Code::kDenied);
  EXPECT_EQ(server->counters().requests, 0U);
}

TEST_F(Tls, PlainTextToATlsServerIsClosed) {
  const auto server = *HttpServer::Listen(*loop_, {.tls = Identity()});
  const auto client = Client({});
  const auto answer = Ask(*client, {.url = "http://" + FormatAddress(server->address()) + "/"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_EQ(server->counters().requests, 0U);
}

}  // namespace
}  // namespace muster::net

// The server and the client against each other, in one loop.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "net/http_client.h"
#include "net/http_server.h"
#include "net/listen_socket.h"
#include "net/local_access.h"
#include "net/turn_loop_test.h"

namespace muster::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Http : public testing::Test {
 protected:
  void Serve(ServerOptions options = {}) {
    server_ = *HttpServer::Listen(*loop_, std::move(options));
    server_->Handle(Method::kGet, "/hello/{name}", [](const Request& request) -> Result<Response> {
      return Response{.body = "hello " + request.bound.at("name")};
    });
    server_->Handle(Method::kPost, "/echo", [](const Request& request) -> Result<Response> {
      return Response{.content_type = "application/octet-stream", .body = request.body};
    });
    server_->Handle(Method::kGet, "/missing", [](const Request&) -> Result<Response> {
      return Error(Code::kNotFound, "no agent \"n7\"", "muster ls");
    });
    server_->HandleEvents("/events", [this](const Request& request, EventStream stream) -> Status {
      last_ids_.emplace_back(FindHeader(request.headers, "Last-Event-ID").value_or("-"));
      streams_.push_back(std::move(stream));
      return Ok();
    });
  }
  void Connect(ClientOptions options = {}) {
    client_ = *HttpClient::Create(*loop_, std::move(options));
  }
  std::string Url(std::string_view path, std::string_view scheme = "http") const {
    return std::string(scheme) + "://" + FormatAddress(server_->address()) + std::string(path);
  }
  Result<Response> Ask(ClientRequest request) {
    std::optional<Result<Response>> got;
    client_->Send(std::move(request), [&got](Result<Response> answer) { got = std::move(answer); });
    EXPECT_TRUE(TurnUntil(*loop_, [&] { return got.has_value(); }));
    return got ? std::move(*got) : Error(Code::kBug, "no answer");
  }
  StreamListener Listener() {
    return {.on_open = [this] { opened_ = true; },
            .on_event = [this](const Event& event) { events_.push_back(event); },
            .on_end = [this](const Error& error) { ended_.push_back(error); }};
  }

  std::unique_ptr<os::EventLoop> loop_ = *os::EventLoop::Create();
  std::vector<EventStream> streams_;
  std::vector<std::string> last_ids_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpClient> client_;
  bool opened_ = false;
  std::vector<Event> events_;
  std::vector<Error> ended_;
};

TEST_F(Http, AnswersWhatTheRouteSays) {
  Serve();
  Connect();
  const auto answer = Ask({.url = Url("/hello/n%37?x=1")});
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "hello n7");
  EXPECT_EQ(answer->content_type, "application/json");
}

TEST_F(Http, CarriesABodyOfAnyBytesBothWays) {
  Serve();
  Connect();
  std::string body(900'000, 'x');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 7);
  const auto answer = Ask({.method = Method::kPost, .url = Url("/echo"), .body = body});
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_EQ(answer->body, body);
}

TEST_F(Http, AnswersAnErrorAsJsonThatBecomesTheSameErrorAgain) {
  Serve();
  Connect();
  const auto answer = Ask({.url = Url("/missing")});
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->body,
            R"({"error":{"code":"not_found","hint":"muster ls","message":"no agent \"n7\""}})"
            "\n");
  const Error error = Successful(*answer).error();
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.ToString(), "no agent \"n7\"; muster ls");
}

TEST_F(Http, TellsAnUnknownPathFromAnotherMethod) {
  Serve();
  Connect();
  EXPECT_EQ(Ask({.url = Url("/nowhere")})->status, 404);
  const auto answer = Ask({.method = Method::kDelete, .url = Url("/echo")});
  EXPECT_EQ(answer->status, 405);
  EXPECT_THAT(answer->body, HasSubstr("it takes POST"));
}

TEST_F(Http, ListensOnIpVersion6) {
  auto listening = OpenListenSocket({"::1", 0});
  if (!listening) GTEST_SKIP() << listening.error().ToString();
  Serve({.listening = std::move(listening->fd)});
  Connect();
  std::string peer;
  server_->Handle(Method::kGet, "/peer", [&peer](const Request& request) -> Result<Response> {
    peer = request.peer;
    return Response{};
  });
  EXPECT_THAT(Url("/peer"), testing::StartsWith("http://[::1]:"));
  EXPECT_EQ(Ask({.url = Url("/peer")})->status, 200);
  EXPECT_EQ(ParseAddress(peer)->host, "::1");
}

TEST(ListenSocketTest, SaysWhyItCannotListen) {
  const auto taken = *OpenListenSocket({"127.0.0.1", 0});
  EXPECT_NE(taken.address.port, 0);
  EXPECT_EQ(OpenListenSocket(taken.address).error().code(), Code::kAlreadyExists);
  EXPECT_EQ(OpenListenSocket({"node7.cluster", 0}).error().code(), Code::kInvalid);
  EXPECT_FALSE(OpenListenSocket({"192.0.2.1", 0}));  // no address of this host (RFC 5737)
  const Fd quiet(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(BoundAddress(quiet.get()).error().code(), Code::kInvalid);
  EXPECT_EQ(BoundAddress(taken.fd.get())->port, taken.address.port);
}

TEST_F(Http, UsesAConnectionAgain) {
  Serve();
  Connect();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Ask({.url = Url("/hello/a")})->status, 200);
  EXPECT_EQ(server_->counters().accepted, 1U);
  EXPECT_EQ(server_->counters().requests, 5U);
}

TEST_F(Http, RefusesABodyThatIsTooLargeBeforeHoldingIt) {
  Serve({.max_body = 1_KiB});
  Connect();
  const auto answer =
      Ask({.method = Method::kPost, .url = Url("/echo"), .body = std::string(1025, 'x')});
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_EQ(answer->status, 413);
  EXPECT_THAT(answer->body, HasSubstr("a body of 1025 bytes is too large"));
}

TEST_F(Http, StopsReadingAnAnswerThatIsTooLarge) {
  Serve();
  Connect();
  const auto answer = Ask({.method = Method::kPost,
                           .url = Url("/echo"),
                           .body = std::string(100'000, 'x'),
                           .max_response = 10_KiB});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kPrecondition);
  EXPECT_THAT(answer.error().message(), HasSubstr("larger than 10240 bytes"));
}

TEST_F(Http, AsksForTheTokenOnEveryPathButThoseForAnyone) {
  const JoinToken token = JoinToken::Random();
  Serve({.token = token});
  server_->Handle(
      Method::kGet, "/alive", [](const Request&) -> Result<Response> { return Response{}; },
      Access::kAnyone);
  Connect();
  EXPECT_EQ(Ask({.url = Url("/alive")})->status, 200);
  for (const char* path : {"/hello/a", "/nowhere", "/events"}) {
    const auto answer = Ask({.url = Url(path)});
    EXPECT_EQ(answer->status, 401);
    EXPECT_EQ(Successful(*answer).error().code(), Code::kUnauthenticated);
  }
  Connect({.token = JoinToken::Random()});
  const auto wrong = Ask({.method = Method::kPost, .url = Url("/echo"), .body = "x"});
  EXPECT_EQ(wrong->status, 401);
  EXPECT_THAT(wrong->body, HasSubstr("the token is not the one of this server"));
  Connect({.token = token});
  EXPECT_EQ(Ask({.url = Url("/hello/a")})->status, 200);
}

TEST_F(Http, AsksTheHookBeforeAnythingElse) {
  ServerOptions options;
  options.admit = [this](const Request& request) {
    return CheckLocalAccess(request, server_->address().port, false);
  };
  Serve(std::move(options));
  Connect();
  EXPECT_EQ(Ask({.url = Url("/hello/a")})->status, 200);
  EXPECT_EQ(Ask({.url = Url("/hello/a"), .headers = {{"Host", "evil.example"}}})->status, 403);
  EXPECT_EQ(Ask({.url = Url("/hello/a"), .headers = {{"Origin", "http://evil"}}})->status, 403);
}

TEST_F(Http, SendsNoTokenToAnotherHostInPlainText) {
  Connect({.token = JoinToken::Random()});
  const auto answer = Ask({.url = "http://192.0.2.1:7/x"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kDenied);
}

TEST_F(Http, SaysWhichServerCannotBeReached) {
  Serve();
  const std::string url = Url("/hello/a");
  server_.reset();
  Connect();
  const auto answer = Ask({.url = url});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_THAT(answer.error().message(), HasSubstr("GET " + url));
  EXPECT_THAT(answer.error().message(), HasSubstr("refused"));
}

TEST_F(Http, TriesAgainUntilTheServerIsThere) {
  Serve();
  const Address address = server_->address();
  const std::string url = Url("/hello/a");
  server_.reset();
  Connect();
  std::optional<Result<Response>> got;
  client_->Send({.url = url, .retry = {.attempts = 100, .first = std::chrono::milliseconds(5)}},
                [&got](Result<Response> answer) { got = std::move(answer); });
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(loop_->RunOnce(std::chrono::milliseconds(2)));
  EXPECT_FALSE(got);
  Serve({.address = address});
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return got.has_value(); }));
  EXPECT_EQ((*got)->body, "hello a");
}

TEST_F(Http, EndsARequestAtItsDeadline) {
  auto listening = *OpenListenSocket({"127.0.0.1", 0});  // takes connections and never answers
  Connect();
  const auto answer = Ask({.url = "http://" + FormatAddress(listening.address) + "/",
                           .timeout = std::chrono::milliseconds(50)});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kDeadline);
}

TEST_F(Http, CancelledCallsStaySilent) {
  Serve();
  Connect();
  const CallId call = client_->Send({.url = Url("/hello/a")}, [](auto) { FAIL(); });
  client_->Cancel(call);
  client_->Cancel(call);
  EXPECT_EQ(Ask({.url = Url("/hello/b")})->body, "hello b");
}

TEST_F(Http, PushesEventsInOrder) {
  Serve();
  Connect();
  client_->Listen({.url = Url("/events")}, Listener());
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return opened_ && streams_.size() == 1; }));
  EXPECT_THAT(events_, ElementsAre());
  ASSERT_TRUE(streams_[0].Send({.id = "1", .type = "table", .data = "a\nb"}));
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return events_.size() == 1; }));
  const std::string large(300'000, 'y');
  ASSERT_TRUE(streams_[0].Send({.id = "2", .type = "table", .data = large}));
  ASSERT_TRUE(streams_[0].Send({.data = "last"}));
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return events_.size() == 3; }));
  EXPECT_THAT(events_, ElementsAre(Event{"1", "table", "a\nb"}, Event{"2", "table", large},
                                   Event{"2", "message", "last"}));
  EXPECT_TRUE(ended_.empty());
}

TEST_F(Http, AStreamThatWeEndDeliversWhatWasQueued) {
  Serve();
  Connect();
  client_->Listen({.url = Url("/events")}, Listener());
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return opened_ && streams_.size() == 1; }));
  std::optional<StreamEnd> end;
  streams_[0].OnEnd([&end](StreamEnd how) { end = how; });
  ASSERT_TRUE(streams_[0].Send({.data = "bye"}));
  streams_[0].Close();
  EXPECT_FALSE(streams_[0].Send({.data = "too late"}));
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return !ended_.empty() && end; }));
  EXPECT_THAT(events_, ElementsAre(Event{"", "message", "bye"}));
  EXPECT_EQ(*end, StreamEnd::kClosed);
  EXPECT_EQ(ended_[0].code(), Code::kUnavailable);
  EXPECT_THAT(ended_[0].message(), HasSubstr("the server ended the event stream"));
}

TEST_F(Http, AStreamLearnsThatItsReaderIsGone) {
  Serve();
  Connect();
  const CallId call = client_->Listen({.url = Url("/events")}, Listener());
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return opened_ && streams_.size() == 1; }));
  std::optional<StreamEnd> end;
  streams_[0].OnEnd([&end](StreamEnd how) { end = how; });
  client_->Cancel(call);
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return end.has_value(); }));
  EXPECT_EQ(*end, StreamEnd::kPeerGone);
  EXPECT_FALSE(streams_[0].open());
  EXPECT_EQ(server_->counters().streams, 0U);
}

TEST_F(Http, AReaderLearnsThatItsServerIsGone) {
  Serve();
  Connect();
  client_->Listen({.url = Url("/events")}, Listener());
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return opened_ && streams_.size() == 1; }));
  std::optional<StreamEnd> end;
  streams_[0].OnEnd([&end](StreamEnd how) { end = how; });
  server_.reset();
  EXPECT_EQ(end, StreamEnd::kServerGone);
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return !ended_.empty(); }));
  EXPECT_EQ(ended_[0].code(), Code::kUnavailable);
  EXPECT_THAT(ended_[0].message(), HasSubstr("the event stream broke off"));
  streams_.clear();  // handles outlive the server
}

TEST_F(Http, AReaderSaysWhereItWas) {
  Serve();
  Connect();
  client_->Listen({.url = Url("/events"), .last_event_id = "41"}, Listener());
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return opened_; }));
  EXPECT_THAT(last_ids_, ElementsAre("41"));
}

TEST_F(Http, AStreamThatIsRefusedEndsWithTheServersError) {
  Serve({.token = JoinToken::Random()});
  Connect();
  client_->Listen({.url = Url("/events")}, Listener());
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return !ended_.empty(); }));
  EXPECT_EQ(ended_[0].code(), Code::kUnauthenticated);
  EXPECT_FALSE(opened_);
}

TEST_F(Http, AHandlerMayRefuseAStream) {
  Serve();
  server_->HandleEvents("/full", [this](const Request&, EventStream stream) -> Status {
    streams_.push_back(std::move(stream));
    return Error(Code::kUnavailable, "too many readers");
  });
  Connect();
  client_->Listen({.url = Url("/full")}, Listener());
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return !ended_.empty(); }));
  EXPECT_EQ(ended_[0].code(), Code::kUnavailable);
  EXPECT_THAT(ended_[0].message(), HasSubstr("too many readers"));
  EXPECT_FALSE(streams_[0].open());
  EXPECT_FALSE(streams_[0].Send({.data = "x"}));
}

/// What an executed program would find open.
std::vector<std::string> Inherited() {
  std::vector<std::string> inherited;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::string name = entry.path().filename().string();
    const int flags = ::fcntl(std::stoi(name), F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC) != 0) continue;
    inherited.push_back(name + " " + std::filesystem::read_symlink(entry).string());
  }
  std::ranges::sort(inherited);
  return inherited;
}

TEST_F(Http, OpensNoDescriptorThatAProgramWouldInherit) {
  const std::vector<std::string> before = Inherited();
  Serve();
  Connect();
  client_->Listen({.url = Url("/events")}, Listener());
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return opened_; }));
  EXPECT_EQ(Inherited(), before);
}

TEST_F(Http, AnAnswerThatIsNoStreamIsCalledThat) {
  Serve();
  Connect();
  client_->Listen({.url = Url("/hello/a")}, Listener());
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return !ended_.empty(); }));
  EXPECT_EQ(ended_[0].code(), Code::kPrecondition);
  EXPECT_THAT(ended_[0].message(), HasSubstr("is no event stream, but 'application/json'"));
}

TEST_F(Http, HeartbeatsKeepAQuietStream) {
  Serve({.heartbeat = std::chrono::milliseconds(20)});
  Connect();
  client_->Listen({.url = Url("/events"), .silence = std::chrono::milliseconds(500)}, Listener());
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return opened_; }));
  bool later = false;
  loop_->After(std::chrono::milliseconds(800), [&later] { later = true; });
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return later; }));
  EXPECT_TRUE(ended_.empty());
  EXPECT_THAT(events_, ElementsAre());
}

TEST_F(Http, SilenceEndsAStream) {
  Serve({.heartbeat = std::chrono::hours(1)});
  Connect();
  client_->Listen({.url = Url("/events"), .silence = std::chrono::milliseconds(50)}, Listener());
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return !ended_.empty(); }));
  EXPECT_TRUE(opened_);
  EXPECT_EQ(ended_[0].code(), Code::kDeadline);
}

TEST_F(Http, ACallbackMayDestroyTheClient) {
  Serve();
  Connect();
  StreamListener listener = Listener();
  listener.on_event = [this](const Event&) { client_.reset(); };
  client_->Listen({.url = Url("/events")}, std::move(listener));
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return opened_ && streams_.size() == 1; }));
  ASSERT_TRUE(streams_[0].Send({.data = "a"}));
  ASSERT_TRUE(streams_[0].Send({.data = "b"}));
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return client_ == nullptr && !streams_[0].open(); }));
}

}  // namespace
}  // namespace muster::net

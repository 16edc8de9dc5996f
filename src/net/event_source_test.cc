#include "net/event_source.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "net/http_server.h"
#include "net/turn_loop_test.h"

namespace muster::net {
namespace {

using testing::ElementsAre;

class KeptStream : public testing::Test {
 protected:
  void Serve(ServerOptions options = {}) {
    if (address_.port != 0) options.address = address_;
    server_ = *HttpServer::Listen(*loop_, std::move(options));
    address_ = server_->address();
    server_->HandleEvents("/events", [this](const Request& request, EventStream stream) -> Status {
      last_ids_.emplace_back(FindHeader(request.headers, "Last-Event-ID").value_or("-"));
      streams_.push_back(std::move(stream));
      return Ok();
    });
  }
  void Keep(std::string_view path = "/events") {
    source_ = std::make_unique<EventSource>(
        *loop_, *client_,
        EventSourceOptions{
            .stream = {.url = "http://" + FormatAddress(address_) + std::string(path)},
            .first_wait = std::chrono::milliseconds(1),
            .most_wait = std::chrono::milliseconds(10)},
        EventSourceListener{
            .on_open = [this] { ++opened_; },
            .on_event = [this](const Event& event) { data_.push_back(event.data); },
            .on_lost = [this](const Error& why, auto) { lost_.push_back(why.code()); },
            .on_refused = [this](const Error& why) { refused_.push_back(why.code()); }});
  }

  std::unique_ptr<os::EventLoop> loop_ = *os::EventLoop::Create();
  Address address_;
  std::vector<std::string> last_ids_;
  std::vector<EventStream> streams_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpClient> client_ = *HttpClient::Create(*loop_, {});
  std::unique_ptr<EventSource> source_;
  int opened_ = 0;
  std::vector<std::string> data_;
  std::vector<Code> lost_;
  std::vector<Code> refused_;
};

TEST_F(KeptStream, GoesOnBehindItsLastEventWithTheNextServer) {
  Serve();
  Keep();
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return streams_.size() == 1; }));
  ASSERT_TRUE(streams_[0].Send({.id = "7", .data = "a"}));
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return data_.size() == 1; }));
  server_.reset();
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return lost_.size() >= 4; }));  // nobody is there
  Serve();
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return opened_ == 2; }));
  ASSERT_TRUE(streams_[1].Send({.id = "8", .data = "b"}));
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return data_.size() == 2; }));
  EXPECT_THAT(last_ids_, ElementsAre("-", "7"));
  EXPECT_THAT(data_, ElementsAre("a", "b"));
  EXPECT_EQ(source_->last_event_id(), "8");
  EXPECT_THAT(lost_, testing::Each(Code::kUnavailable));
  EXPECT_TRUE(refused_.empty());
}

TEST_F(KeptStream, GivesUpWhereTryingAgainWouldNotHelp) {
  Serve();
  Keep("/nowhere");
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return !refused_.empty(); }));
  EXPECT_THAT(refused_, ElementsAre(Code::kNotFound));
  server_.reset();
  refused_.clear();
  Serve({.token = JoinToken::Random()});
  Keep();
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return !refused_.empty(); }));
  EXPECT_THAT(refused_, ElementsAre(Code::kUnauthenticated));
  EXPECT_TRUE(lost_.empty());
}

TEST_F(KeptStream, StaysSilentOnceItIsGone) {
  Serve();
  Keep();
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return opened_ == 1; }));
  server_.reset();
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return !lost_.empty(); }));
  source_.reset();
  const std::size_t before = lost_.size();
  bool later = false;
  loop_->After(std::chrono::milliseconds(50), [&later] { later = true; });
  ASSERT_TRUE(TurnUntil(*loop_, [&] { return later; }));
  EXPECT_EQ(lost_.size(), before);
}

TEST_F(KeptStream, MayBeDestroyedByItsOwnCallbacks) {
  Serve();
  for (int which = 0; which < 3; ++which) {
    std::unique_ptr<EventSource> source;
    bool gone = false;
    const auto destroy = [&](bool really) {
      if (!really) return;
      source.reset();
      gone = true;
    };
    const std::string path = which == 2 ? "/nowhere" : "/events";
    const std::size_t streams = streams_.size();
    source = std::make_unique<EventSource>(
        *loop_, *client_,
        EventSourceOptions{.stream = {.url = "http://" + FormatAddress(address_) + path}},
        EventSourceListener{.on_open = [&] { destroy(which == 0); },
                            .on_event = [&](const Event&) { destroy(which == 1); },
                            .on_lost = {},
                            .on_refused = [&](const Error&) { destroy(which == 2); }});
    if (which == 1) {
      ASSERT_TRUE(TurnUntil(*loop_, [&] { return streams_.size() > streams; }));
      ASSERT_TRUE(streams_.back().Send({.data = "x"}));
    }
    ASSERT_TRUE(TurnUntil(*loop_, [&] { return gone; }));
  }
}

}  // namespace
}  // namespace muster::net

// Streams that open, send, close, are left and lose their server at random: every reader sees a
// prefix of what was sent, in order, each end is told once, and nothing stays.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/turn_loop_test.h"

namespace muster::net {
namespace {

struct Reader {
  CallId call;
  std::uint64_t seen = 0;  ///< events, which are numbered from 1
  int ends = 0;
  bool left = false;
};

struct Writer {
  explicit Writer(EventStream opened) : stream(std::move(opened)) {}
  EventStream stream;
  std::uint64_t sent = 0;
  int ends = 0;
};

class RandomStreams : public testing::TestWithParam<bool> {
 protected:
  void Serve() {
    ServerOptions options{.address = address_,
                          .max_stream_queue = 128_KiB,
                          .heartbeat = std::chrono::milliseconds(3)};
    if (GetParam()) options.tls = identity_;
    server_ = *HttpServer::Listen(*loop_, std::move(options));
    address_ = server_->address();
    server_->HandleEvents("/{reader}",
                          [this](const Request& request, EventStream stream) -> Status {
                            auto writer = std::make_unique<Writer>(std::move(stream));
                            writer->stream.OnEnd([raw = writer.get()](StreamEnd) { ++raw->ends; });
                            writers_[std::stoull(request.bound.at("reader"))] = std::move(writer);
                            return Ok();
                          });
  }
  void Open() {
    const std::uint64_t id = readers_.size();
    readers_.push_back(std::make_unique<Reader>());
    Reader* const reader = readers_.back().get();
    reader->call = client_->Listen({.url = std::string(GetParam() ? "https://" : "http://") +
                                           FormatAddress(address_) + "/" + std::to_string(id)},
                                   {.on_event =
                                        [reader](const Event& event) {
                                          EXPECT_EQ(event.id, std::to_string(++reader->seen));
                                          EXPECT_FALSE(reader->left);
                                        },
                                    .on_end = [reader](const Error&) { ++reader->ends; }});
  }
  void Step() {
    const std::uint64_t what = random_.Below(100);
    Writer* const writer = AnyWriter();
    if (what < 15) {
      Open();
    } else if (what < 80 && writer != nullptr) {
      const std::string id = std::to_string(++writer->sent);
      const std::string data(random_.Below(4) == 0 ? 40'000 : 10, 'd');
      [[maybe_unused]] const Status sent = writer->stream.Send({.id = id, .data = data});
    } else if (what < 85 && writer != nullptr) {
      writer->stream.Close();
    } else if (what < 93 && !readers_.empty()) {
      Reader& reader = *readers_[random_.Below(readers_.size())];
      reader.left = true;
      client_->Cancel(reader.call);
    } else if (what == 99 && random_.Below(10) == 0) {
      server_.reset();
      Serve();
    }
    if (random_.Below(2) == 0) {
      EXPECT_TRUE(loop_->RunOnce(std::chrono::nanoseconds(0)));
    }
  }
  Writer* AnyWriter() {
    if (writers_.empty()) return nullptr;
    auto at = writers_.begin();
    std::advance(at, random_.Below(writers_.size()));
    return at->second.get();
  }

  // --gtest_shuffle --gtest_random_seed=N plays another one.
  const std::uint64_t seed_ =
      20261130 + static_cast<std::uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  Rng random_{seed_};
  const TlsIdentity identity_ = *MakeTlsIdentity("test", SystemClock().Wall());
  std::unique_ptr<os::EventLoop> loop_ = *os::EventLoop::Create();
  Address address_{"127.0.0.1", 0};
  std::map<std::uint64_t, std::unique_ptr<Writer>> writers_;
  std::unique_ptr<HttpServer> server_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::unique_ptr<HttpClient> client_;
};

TEST_P(RandomStreams, EndOnceInOrderAndLeaveNothing) {
  Serve();
  ClientOptions options;
  if (GetParam()) options.pin = identity_.fingerprint;
  client_ = *HttpClient::Create(*loop_, std::move(options));
  for (int i = 0; i < (GetParam() ? 1500 : 6000); ++i) Step();
  for (const auto& [id, writer] : writers_) writer->stream.Close();
  const bool over = TurnUntil(*loop_, [&] {
    for (const auto& [id, writer] : writers_) writer->stream.Close();  // those that open late
    return std::ranges::all_of(readers_, [](const auto& r) { return r->left || r->ends == 1; }) &&
           server_->counters().streams == 0 &&
           std::ranges::all_of(writers_, [](const auto& w) { return w.second->ends == 1; });
  });
  EXPECT_TRUE(over) << "seed " << seed_;
  std::uint64_t seen = 0;
  for (std::size_t id = 0; id < readers_.size(); ++id) {
    EXPECT_LE(readers_[id]->ends, 1);
    seen += readers_[id]->seen;
    const auto writer = writers_.find(id);
    if (writer != writers_.end()) {
      EXPECT_LE(readers_[id]->seen, writer->second->sent);
    }
  }
  EXPECT_GT(seen, 100U);
}

INSTANTIATE_TEST_SUITE_P(PlainAndTls, RandomStreams, testing::Bool(), [](const auto& tls) {
  return tls.param ? std::string("Tls") : std::string("Plain");
});

}  // namespace
}  // namespace muster::net

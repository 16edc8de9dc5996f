#include "agent/simulation/network.h"

#include <algorithm>
#include <utility>

#include "agent/simulation/pipe.h"
#include "net/router.h"

namespace muster::agent::simulation {

/// The coordinator's end.
class Routes final : public net::HttpRoutes {
 public:
  Routes(Network& network, net::ServerOptions options)
      : network_(network), options_(std::move(options)) {
    network_.routes_ = this;
  }
  ~Routes() override {
    network_.routes_ = nullptr;
    for (const auto& weak : std::exchange(network_.pipes_, {})) {
      if (const auto pipe = weak.lock()) pipe->EndServer(net::StreamEnd::kServerGone);
    }
  }

  void Handle(net::Method method, std::string_view pattern, Handler handler,
              net::Access /*access*/) override {
    table_.Add(method, pattern);
    handlers_.push_back({std::move(handler), {}});
  }
  void HandleEvents(std::string_view pattern, StreamHandler handler,
                    net::Access /*access*/) override {
    table_.Add(net::Method::kGet, pattern);
    handlers_.push_back({{}, std::move(handler)});
  }
  const net::Address& address() const override { return options_.address; }

  net::Response Answer(net::Request request) {
    const auto match = table_.Find(request.method, request.path);
    if (!match) return net::ErrorResponse(match.error());
    request.bound = match->bound;
    auto response = handlers_[match->route].first(request);
    return response ? *std::move(response) : net::ErrorResponse(response.error());
  }
  /// An error as the answer says it.
  std::optional<net::Response> Open(net::Request request, std::shared_ptr<net::StreamState> state) {
    const auto match = table_.Find(request.method, request.path);
    if (!match) return net::ErrorResponse(match.error());
    request.bound = match->bound;
    const Status opened =
        handlers_[match->route].second(request, net::EventStream(std::move(state)));
    if (opened) return std::nullopt;
    return net::ErrorResponse(opened.error());
  }
  const net::ServerOptions& options() const { return options_; }

 private:
  Network& network_;
  net::ServerOptions options_;
  net::RouteTable table_;
  std::vector<std::pair<Handler, StreamHandler>> handlers_;
};

/// An agent's end. What it started is forgotten with it.
class Caller final : public net::HttpCalls {
 public:
  Caller(Network& network, std::string host)
      : network_(network), life_(network.world_.loop()), host_(std::move(host)) {}
  ~Caller() override {
    for (auto& [id, pipe] : pipes_) pipe->EndClient();
  }

  net::CallId Send(net::ClientRequest request, Done done) override;
  net::CallId Listen(net::StreamRequest request, net::StreamListener listener) override;
  void Cancel(net::CallId call) override {
    calls_.erase(call.value());
    const auto found = pipes_.find(call.value());
    if (found == pipes_.end()) return;
    found->second->EndClient();
    pipes_.erase(found);
  }

 private:
  void Finish(std::uint64_t call, Result<net::Response> answer) {
    const auto found = calls_.find(call);
    if (found == calls_.end()) return;
    const Done done = std::move(found->second);
    calls_.erase(found);
    done(std::move(answer));
  }
  void FinishLater(std::uint64_t call, nanoseconds delay, Error error) {
    life_.After(delay, [this, call, error = std::move(error)] { Finish(call, error); });
  }
  void Carry(std::uint64_t call, const net::ClientRequest& request);

  Network& network_;
  Lifetime life_;
  const std::string host_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Done> calls_;
  std::map<std::uint64_t, std::shared_ptr<Pipe>> pipes_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

net::CallId Caller::Send(net::ClientRequest request, Done done) {
  const std::uint64_t call = next_++;
  calls_[call] = std::move(done);
  FinishLater(call, request.timeout, Error(Code::kDeadline, "no answer in time"));
  Carry(call, request);
  return net::CallId(call);
}

void Caller::Carry(std::uint64_t call, const net::ClientRequest& request) {
  World& world = network_.world_;
  const Weather& weather = network_.weather_;
  const Error broken(Code::kUnavailable, "the connection broke");
  if (!network_.Serves() || world.Chance(weather.refused)) {
    return FinishLater(call, network_.Way(), broken);
  }
  const bool straggles = world.Chance(weather.straggles);
  const bool unheard = straggles || world.Chance(weather.unheard);
  if (unheard) FinishLater(call, network_.Way(), broken);
  const auto answer = [this, call, unheard,
                       alive = std::weak_ptr(alive_)](const net::Response& response) {
    if (!unheard && !alive.expired()) Finish(call, response);
  };
  if (straggles) {
    // Somebody else's queue held it: whoever sent it has long sent others.
    network_.life_.After(world.Delay({}, seconds(8)),
                         [&network = network_, host = host_, request, answer] {
                           network.Deliver(host, request, answer);
                         });
    return;
  }
  network_.Deliver(host_, request, answer);
  if (world.Chance(weather.doubled)) {
    network_.life_.After(world.Delay({}, seconds(2)), [&network = network_, host = host_, request] {
      network.Deliver(host, request, [](const net::Response&) {});
    });
  }
}

net::CallId Caller::Listen(net::StreamRequest request, net::StreamListener listener) {
  const std::uint64_t call = next_++;
  World& world = network_.world_;
  const bool refused = !network_.Serves() || world.Chance(network_.weather_.refused);
  const auto pipe = std::make_shared<Pipe>(network_, host_, request, std::move(listener));
  pipes_[call] = pipe;
  pipe->OnClientEnd([this, call, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) pipes_.erase(call);
  });
  if (refused) {
    pipe->FailLater(network_.Way(), Error(Code::kUnavailable, "the connection broke"));
    return net::CallId(call);
  }
  pipe->ExpectAnswer();
  network_.life_.After(
      network_.ArrivesAt(host_, false) - world.Now(), [&network = network_, pipe, request] {
        if (!network.Serves()) {
          return pipe->FailLater({}, Error(Code::kUnavailable, "the server is gone"));
        }
        network.pipes_.push_back(pipe);
        const net::Request asked{.path = request.url.substr(request.url.find("/v1/")),
                                 .headers = {{"Last-Event-ID", request.last_event_id}}};
        std::optional<net::Response> refusal;
        const bool lives = network.fate_.Play([&] {
          network.fate_.Step();
          refusal = network.routes_->Open(asked, pipe->Open(network.routes_->options()));
        });
        if (lives && refusal) pipe->Refuse(net::ErrorOf(*refusal));
      });
  return net::CallId(call);
}

Network::~Network() = default;

std::unique_ptr<net::HttpRoutes> Network::Serve(net::ServerOptions options) {
  return std::make_unique<Routes>(*this, std::move(options));
}

std::unique_ptr<net::HttpCalls> Network::Connect(const std::string& host) {
  return std::make_unique<Caller>(*this, host);
}

Instant Network::ArrivesAt(const std::string& host, bool to_host) {
  const auto found = cuts_.find(host);
  Instant begins = world_.Now();
  if (found != cuts_.end()) {
    begins = std::max(begins, to_host ? found->second.to : found->second.from);
  }
  return begins + Way();
}

void Network::Deliver(const std::string& host, const net::ClientRequest& request,
                      std::function<void(net::Response)> answer) {
  life_.After(ArrivesAt(host, false) - world_.Now(),
              [this, host, request, answer = std::move(answer)] {
                if (!Serves()) {
                  return answer(net::ErrorResponse(Error(Code::kUnavailable, "server gone")));
                }
                std::optional<net::Response> response;
                const bool lives = fate_.Play([&] {
                  fate_.Step();
                  response = Ask(request);
                  fate_.Step();
                });
                if (!lives) response = net::ErrorResponse(Error(Code::kUnavailable, "it died"));
                life_.After(ArrivesAt(host, true) - world_.Now(),
                            [answer, response = *std::move(response)] { answer(response); });
              });
}

net::Response Network::Ask(const net::ClientRequest& request) {
  return routes_->Answer({.method = request.method,
                          .path = request.url.substr(request.url.find("/v1/")),
                          .headers = request.headers,
                          .body = request.body});
}

void Network::CutOff(const std::string& host, bool to, bool from, nanoseconds how_long) {
  Cut& cut = cuts_[host];
  const Instant until = world_.Now() + how_long;
  if (to) cut.to = std::max(cut.to, until);
  if (from) cut.from = std::max(cut.from, until);
}

void Network::Break(const std::string& host, bool silently) {
  std::erase_if(pipes_, [](const auto& weak) { return weak.expired(); });
  for (const auto& weak : std::vector(pipes_)) {
    const auto pipe = weak.lock();
    if (pipe && pipe->host() == host) pipe->Break(silently);
  }
}

}  // namespace muster::agent::simulation

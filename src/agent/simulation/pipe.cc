#include "agent/simulation/pipe.h"

#include <algorithm>
#include <utility>

namespace muster::agent::simulation {
namespace {

constexpr std::size_t kPiece = 1 << 16;
constexpr nanoseconds kStall = seconds(30);  // until the server misses a reader that says nothing

}  // namespace

Pipe::Pipe(Network& network, std::string host, const net::StreamRequest& request,
           net::StreamListener listener)
    : network_(network),
      world_(network.world_),
      host_(std::move(host)),
      request_(request),
      listener_(std::move(listener)),
      heard_(world_.Now()) {}

Pipe::~Pipe() {
  if (state_) state_->set_carrier(nullptr);
}

std::shared_ptr<net::StreamState> Pipe::Open(const net::ServerOptions& options) {
  state_ =
      std::make_shared<net::StreamState>(static_cast<std::size_t>(options.max_stream_queue.count));
  beat_ = options.heartbeat;
  if (client_open_ && !broken_) {
    state_->set_carrier(this);
    // The head of the answer.
    PushComment();
    Beat();
    WatchSilence();
    Wake();
  } else {
    TellServerAfter(network_.Way());
  }
  return state_;
}

/// An empty queue takes it.
void Pipe::PushComment() {
  static_cast<void>(state_->Push(std::make_shared<const std::string>(net::FormatComment(""))));
}

void Pipe::Refuse(const Error& error) {
  if (state_) state_->set_carrier(nullptr);
  state_.reset();
  FailLater(network_.ArrivesAt(host_, true) - world_.Now(), error);
}

void Pipe::FailLater(nanoseconds delay, const Error& error) {
  network_.life_.After(delay, [self = shared_from_this(), error] { self->TellClient(error); });
}

void Pipe::ExpectAnswer() {
  network_.life_.After(request_.answer_timeout, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->greeted_ || !self->client_open_) return;
    self->broken_ = true;
    self->TellServerAfter(kStall);
    self->TellClient(Error(Code::kDeadline, "no answer in time"));
  });
}

void Pipe::TellClient(const Error& error) {
  if (!std::exchange(client_open_, false)) return;
  if (forget_) forget_();
  listener_.on_end(error);
}

void Pipe::TellServerAfter(nanoseconds delay) {
  network_.life_.After(delay, [self = shared_from_this()] {
    if (!self->state_ || self->state_->end()) return;
    self->state_->End(net::StreamEnd::kPeerGone);
    self->network_.fate_.Play([&] { self->state_->TellEnd(); });
  });
}

void Pipe::EndServer(net::StreamEnd end) {
  if (!state_ || state_->end()) return;
  state_->End(end);
  network_.life_.After({}, [self = shared_from_this(), state = state_] {
    self->network_.fate_.Play([&] { state->TellEnd(); });
  });
  FailLater(network_.ArrivesAt(host_, true) - world_.Now(),
            Error(Code::kUnavailable, "the stream ended"));
}

void Pipe::EndClient() {
  if (!std::exchange(client_open_, false) || std::exchange(broken_, true)) return;
  TellServerAfter(network_.ArrivesAt(host_, false) - world_.Now());
}

void Pipe::Break(bool silently) {
  if (std::exchange(broken_, true)) return;
  if (!silently) {
    FailLater(network_.Way(), Error(Code::kUnavailable, "the connection broke"));
  }
  TellServerAfter(silently ? kStall : network_.Way());
}

void Pipe::Wake() {
  if (std::exchange(pumping_, true)) return;
  network_.life_.After({}, [self = shared_from_this()] {
    self->pumping_ = false;
    self->Pump();
  });
}

void Pipe::Pump() {
  if (broken_ || !state_ || state_->end()) return;
  std::string bytes(std::min(kPiece, state_->queued_bytes()), '\0');
  bytes.resize(state_->Take(bytes.data(), bytes.size()));
  if (bytes.empty()) {
    if (state_->closing()) EndServer(net::StreamEnd::kClosed);
    return;
  }
  if (world_.Chance(network_.weather_.breaks)) {
    world_.Note("the stream of " + host_ + " breaks");
    return Break(world_.Chance(0.2));
  }
  last_ = std::max(last_, network_.ArrivesAt(host_, true));
  network_.life_.After(last_ - world_.Now(), [self = shared_from_this(), bytes = std::move(bytes)] {
    self->Arrive(bytes);
  });
  Wake();
}

void Pipe::Arrive(const std::string& bytes) {
  if (broken_ || !client_open_) return;
  heard_ = world_.Now();
  if (!std::exchange(greeted_, true) && listener_.on_open) listener_.on_open();
  const Status fed = parser_.Feed(bytes, [this](const net::Event& event) {
    if (client_open_) listener_.on_event(event);
  });
  if (!fed) world_.Violate("an event stream that cannot be read: " + fed.error().ToString());
}

void Pipe::Beat() {
  network_.life_.After(beat_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->broken_ || !self->state_ || self->state_->end()) return;
    if (!self->state_->closing() && self->state_->queued_bytes() == 0) {
      self->PushComment();
    }
    self->Beat();
  });
}

void Pipe::WatchSilence() {
  network_.life_.After(heard_ + request_.silence - world_.Now(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || !self->client_open_) return;
    if (self->world_.Now() - self->heard_ < self->request_.silence) return self->WatchSilence();
    self->broken_ = true;
    self->TellServerAfter(kStall);
    self->TellClient(Error(Code::kDeadline, "nothing came for a while"));
  });
}

}  // namespace muster::agent::simulation

#include "agent/remote/remote_peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/wire/wire.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;

// A process that died takes its connections along at once; one that lives dials again in less.
constexpr auto kRedial = milliseconds(300);
constexpr auto kOffsetWindow = std::chrono::minutes(1);

}  // namespace

RemotePeer::RemotePeer(os::EventLoop& loop, std::string name, std::uint32_t ranks,
                       milliseconds lease)
    : loop_(loop), name_(std::move(name)), lease_(lease), ranks_{0, ranks}, heard_(loop.Now()) {
  Watch();
}

RemotePeer::~RemotePeer() {
  for (auto* timer : {&lease_timer_, &redial_timer_}) {
    if (*timer) loop_.Remove(**timer);
  }
}

void RemotePeer::Send(const Order& order) {
  if (const auto* seat = std::get_if<order::Seat>(&order)) {
    if (seated_) before_ = ranks_;
    seated_ = true;
    ranks_.first = seat->first;
  }
  unseen_.push_back({++orders_, wire::Encode(order)});
  if (on_order_) return on_order_();
  Release();
}

void RemotePeer::Release() {
  kept_orders_ = orders_;
  kept_reports_ = reports_;
  Deliver();
}

void RemotePeer::Deliver() {
  for (const SentOrder& order : unseen_) {
    if (!stream_ || !stream_->open()) return;  // the next stream brings them
    if (order.number <= delivered_ || order.number > kept_orders_) continue;
    delivered_ = order.number;
    // One that takes nothing any more ends; its end is heard in a later turn.
    static_cast<void>(
        stream_->Send({.id = std::to_string(order.number), .type = "order", .data = order.text}));
  }
}

void RemotePeer::GoOn(PeerPlace place) {
  ranks_ = place.ranks;
  seated_ = place.seated;
  met_ = place.met;
  before_ = place.before;
  kept_orders_ = orders_ = place.orders;
  kept_reports_ = reports_ = place.reports;
  unseen_.assign(std::make_move_iterator(place.unseen.begin()),
                 std::make_move_iterator(place.unseen.end()));
  follows_ = true;
}

PeerPlace RemotePeer::place() const {
  return {name_,   ranks_,  seated_,  met_,
          before_, orders_, reports_, {unseen_.begin(), unseen_.end()}};
}

void RemotePeer::Replace() { Lose("it joined once more", heard_); }

void RemotePeer::Open(net::EventStream stream, std::uint64_t seen) {
  met_ = true;
  heard_ = loop_.Now();
  if (redial_timer_) loop_.Remove(*std::exchange(redial_timer_, {}));
  const std::uint64_t number = ++streams_;
  stream.OnEnd([weak = weak_from_this(), number](net::StreamEnd) {
    const auto self = weak.lock();
    if (self && self->streams_ == number) self->CloseSoon();
  });
  stream_ = std::move(stream);
  Forget(seen);
  delivered_ = seen;
  Deliver();
}

void RemotePeer::Forget(std::uint64_t seen) {
  while (!unseen_.empty() && unseen_.front().number <= seen) unseen_.pop_front();
}

Status RemotePeer::Take(const ReportBatch& batch) {
  met_ = true;
  heard_ = loop_.Now();
  const auto offset = Offset(batch.sent);
  if (batch.first > reports_ + 1 && follows_) reports_ = batch.first - 1;
  if (batch.first > reports_ + 1) {
    return Error(Code::kInvalid, fmt::format("reports from {} on, but {} was the last to come",
                                             batch.first, reports_));
  }
  Forget(batch.seen);
  std::uint64_t number = batch.first;
  for (const std::string& text : batch.reports) {
    if (number++ <= reports_) continue;  // it came before
    ++reports_;
    auto report = wire::DecodeReport(text, ranks_, offset);
    if (!report && before_ && wire::DecodeReport(text, *before_, offset)) continue;
    if (report && std::holds_alternative<report::Begun>(*report)) before_.reset();
    if (!report) {
      Lose("it sent what is no report: " + report.error().message(), heard_);
      return report.error();
    }
    if (gone_) break;
    // What the heartbeats show comes again in a moment.
    if (!std::holds_alternative<report::Progress>(*report)) newest_to_keep_ = reports_;
    ended_ = ended_ || std::holds_alternative<report::Ended>(*report);
    if (const auto* left = std::get_if<report::Gone>(&*report)) {
      Lose(left->reason, heard_);
      break;
    }
    on_report_(std::move(*report));
  }
  return Ok();
}

/// The quickest way that a batch took is the nearest to none.
std::chrono::nanoseconds RemotePeer::Offset(Instant sent) {
  const auto now = heard_ - sent;
  if (heard_ - offset_since_ > kOffsetWindow) {
    offset_before_ = std::exchange(offset_, std::nullopt);
    offset_since_ = heard_;
  }
  offset_ = offset_ ? std::min(*offset_, now) : now;
  return offset_before_ ? std::min(*offset_, *offset_before_) : *offset_;
}

void RemotePeer::Watch() {
  lease_timer_ = loop_.At(heard_ + lease_, [this] {
    lease_timer_.reset();
    if (loop_.Now() - heard_ >= lease_) {
      return Lose(fmt::format("nothing was heard of it for {} ms", lease_.count()), heard_);
    }
    Watch();
  });
}

void RemotePeer::CloseSoon() {
  if (gone_ || redial_timer_) return;
  redial_timer_ = loop_.After(kRedial, [this, closed = loop_.Now()] {
    redial_timer_.reset();
    Lose("its connection closed", closed);
  });
}

void RemotePeer::Lose(const std::string& reason, Instant since) {
  if (std::exchange(gone_, true)) return;
  const auto self = shared_from_this();  // the report may let go of us
  stream_.reset();
  on_report_(report::Gone{reason, since});
}

}  // namespace muster::agent

#include "agent/simulation/agent_model.h"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "agent/wire/wire.h"

namespace muster::agent::simulation {
namespace {

constexpr std::size_t kWords = 160;
constexpr nanoseconds kLastPosts = seconds(5);
constexpr nanoseconds kGrace = seconds(2);

/// Without the port, which is the kernel's choice.
std::string InWords(const Order& order) {
  if (const auto* words = std::get_if<order::TellWords>(&order)) {
    return fmt::format("tell words of rank {}", words->rank.value());
  }
  const auto* start = std::get_if<order::Start>(&order);
  if (start == nullptr) return wire::Encode(order).substr(0, kWords);
  std::string ranks;
  for (const Rank rank : start->ranks) ranks += fmt::format(" {}", rank.value());
  return fmt::format("start {}: ranks{}, {} kept, of {}", start->generation.value(), ranks,
                     start->keepers.size(), start->world);
}

net::JoinToken Token() { return *net::JoinToken::Parse(std::string(43, 'A')); }

}  // namespace

void AgentModel::BeginIn(nanoseconds delay) {
  life_.After(delay, [this] {
    if (!process_ && !ground_.run_over) Begin();
  });
}

void AgentModel::Begin() {
  ground_.world.Note(name_ + " begins");
  process_ = std::make_unique<Process>(ground_.world.loop(), ground_.fate.deaths());
  const LinkOptions options{.coordinator = {.address = {"127.0.0.1", 1}},
                            .token = Token(),
                            .join = {.version = "1", .name = name_},
                            .patience = ground_.patience};
  process_->link =
      *AgentLink::Create(ground_.world.loop(), options,
                         {.on_ticket = [this](const JobTicket& ticket) { TakeTicket(ticket); },
                          .on_order = [this](const Order& order) { Take(order); },
                          .on_trouble = [](const Error&) {},
                          .on_end = [this](const Error& error) { LoseLink(error); }},
                         ground_.network.Connect(name_));
  process_->link->Join();
}

NodeModel* AgentModel::node() { return process_ ? process_->node.get() : nullptr; }

void AgentModel::TakeTicket(const JobTicket& ticket) {
  ground_.world.Note(fmt::format("{} joined as {}", name_, ticket.agent));
  // One that died may have known it under another number.
  if (process_->deaths != ground_.fate.deaths()) ground_.truth.Disturbed(name_);
  process_->node = std::make_unique<NodeModel>(ground_.world, ground_.truth, ground_.program,
                                               ground_.mishaps, name_, ticket.ranks_per_node,
                                               [this](Report report) { Hear(std::move(report)); });
}

bool AgentModel::CrashesNow() {
  if (!ground_.faults || !ground_.world.Chance(ground_.crashes)) return false;
  process_->crashing = true;
  // From the loop: we are inside of what is to be destroyed.
  process_->life.After({}, [this] { Crash(ground_.world.Chance(0.3)); });
  return true;
}

void AgentModel::Take(const Order& order) {
  Process& process = *process_;
  if (!process.node || process.ended || process.leaving || process.crashing) return;
  ground_.world.Note(fmt::format("{} <- {}", name_, InWords(order)));
  if (CrashesNow()) return;  // before it did anything
  process.node->Send(order);
  CrashesNow();
}

void AgentModel::Hear(Report report) {
  Process& process = *process_;
  if (process.crashing) return;
  if (process.leaving && std::holds_alternative<report::Stopped>(report)) {
    process.life.After({}, [this] { process_->node->Send(order::End{}); });
  }
  if (std::holds_alternative<report::Ended>(report)) {
    process.ended = true;
    process.stop_by = ground_.world.Now() + kLastPosts;
  }
  if (!std::holds_alternative<report::Progress>(report)) {
    ground_.world.Note(fmt::format("{} -> {}", name_, wire::Encode(report).substr(0, kWords)));
  }
  const bool progress = std::holds_alternative<report::Progress>(report);
  if (!progress && CrashesNow() && ground_.world.Chance(0.5)) return;  // before it was sent
  process.link->Send(report);
  if (process.ended) StopWhenDelivered();
}

void AgentModel::StopWhenDelivered() {
  Process& process = *process_;
  if (process.link->delivered() || ground_.world.Now() >= process.stop_by) return Stop();
  process.life.After(milliseconds(50), [this] { StopWhenDelivered(); });
}

/// Given up: the workers must not go on. Out of reach for good: they get the time that they are
/// due. Anything else would be the protocol's fault.
void AgentModel::LoseLink(const Error& error) {
  ground_.world.Note(fmt::format("{} lost its link: {}", name_, error.ToString()));
  Process& process = *process_;
  const bool out_of_reach = error.code() == Code::kUnavailable || error.code() == Code::kDeadline;
  if (!out_of_reach && error.code() != Code::kConflict) {
    ground_.world.Violate(
        fmt::format("{} could not go on with the protocol: {}", name_, error.ToString()));
  }
  ground_.truth.Disturbed(name_);
  if (process.leaving || process.ended) return;
  process.error = error;
  Leave(error.message(), out_of_reach ? kGrace : nanoseconds(0));
}

void AgentModel::Leave() {
  if (!process_) return;
  ground_.truth.Disturbed(name_);
  Leave("it was told to end", kGrace);
}

void AgentModel::Leave(const std::string& why, nanoseconds grace) {
  Process& process = *process_;
  if (process.ended || !process.node) return Stop();
  if (process.leaving)
    return process.node->Send(order::Stop{process.node->generation(), SIGKILL, {}});
  process.leaving = true;
  process.link->Send(report::Gone{why});
  process.node->Send(order::Stop{process.node->generation(), SIGTERM, grace});
}

/// The process is over, in a later turn.
void AgentModel::Stop() {
  process_->life.After({}, [this] {
    Process& process = *process_;
    if (process.node && !std::exchange(process.ended, true)) process.node->Send(order::End{});
    const bool again = process.error && process.error->code() == Code::kConflict;
    ground_.world.Note(name_ + " ends");
    Bury();
    // Who was given up joins anew; of others somebody sees to it.
    BeginIn(again ? nanoseconds(0) : ground_.world.Delay(milliseconds(100), seconds(10)));
  });
}

void AgentModel::Crash(bool host_too) {
  if (!process_) return;
  ground_.world.Note(fmt::format("{} {}", name_, host_too ? "crashes with its host" : "crashes"));
  ground_.truth.Disturbed(name_);
  if (process_->node) process_->node->Abandon(host_too);
  if (host_too) ground_.network.Break(name_, true);
  Bury();
  BeginIn(ground_.world.Delay(milliseconds(20), seconds(25)));
}

void AgentModel::Bury() { process_.reset(); }

}  // namespace muster::agent::simulation

#include "agent/coordinator/gang.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <type_traits>
#include <utility>

#include "base/text.h"

namespace muster::agent {
namespace {

constexpr auto kWaitingTold = std::chrono::seconds(5);

/// Not of ranks that are being stopped.
template <typename T>
constexpr bool kTellsOfThePast =
    std::is_same_v<T, report::Words> || std::is_same_v<T, report::Losses>;

}  // namespace

Gang::Gang(const GangOptions& options, os::EventLoop& loop, OnReport on_report)
    : options_(options),
      loop_(loop),
      on_report_(std::move(on_report)),
      slots_(options.slots),
      active_(options.slots),
      told_(options.slots) {
  for (std::uint32_t i = 0; i < options.slots; ++i) {
    slots_[i].ranks = {i * options.ranks_per_slot, options.ranks_per_slot};
  }
}

Gang::Gang(const GangOptions& options, os::EventLoop& loop, OnReport on_report,
           const GangPlace& place)
    : Gang(options, loop, std::move(on_report)) {
  generation_ = place.generation;
  active_ = told_ = place.told;
  restarting_ = generation_ != Generation();
  for (std::size_t i = 0; i < std::min(slots_.size(), place.slots.size()); ++i) {
    slots_[i].working = place.slots[i].working;
    if (place.slots[i].member) slots_[i].member = Member{*place.slots[i].member, next_id_++};
  }
  for (const MemberPlace& spare : place.spares) spares_.push_back(Member{spare, next_id_++});
}

void Gang::MakeNodeOf(Member& member, const MakeNode& make) {
  member.node = make([this, id = member.id](Report report) { Hear(id, std::move(report)); });
}

GangPlace Gang::place() const {
  GangPlace place{.generation = generation_, .told = told_};
  for (const Slot& slot : slots_) {
    place.slots.push_back({.working = slot.working});
    if (slot.member) place.slots.back().member = *slot.member;
  }
  for (const Member& spare : spares_) place.spares.push_back(spare);
  return place;
}

void Gang::Attach(const std::string& agent, const MakeNode& make) {
  const auto attach = [&](Member& member) {
    if (member.node || member.who.agent != agent) return false;
    MakeNodeOf(member, make);
    return true;
  };
  for (Slot& slot : slots_) {
    if (!slot.member || !attach(*slot.member)) continue;
    // What it was ordered last it may have done: it is asked to stop in any case.
    if (agent.empty()) slot.working = true;
    return;
  }
  for (Member& spare : spares_) {
    if (attach(spare)) return;
  }
}

std::optional<RankRange> Gang::OwnRanks() const {
  for (const Slot& slot : slots_) {
    if (slot.member && slot.member->who.agent.empty()) return slot.ranks;
  }
  return std::nullopt;
}

Gang::~Gang() {
  for (auto* timer : {&waiting_, &end_timer_, &burial_}) {
    if (*timer) loop_.Remove(**timer);
  }
}

void Gang::Add(const NodeName& who, const MakeNode& make) {
  Member member{{.who = who}, next_id_++};
  MakeNodeOf(member, make);
  spares_.push_back(std::move(member));
  Seat();
  StartWhenComplete();
}

/// Only while nothing runs in the free slots: who joins a generation joins it at its start.
void Gang::Seat() {
  for (Slot& slot : slots_) {
    if (slot.member || spares_.empty()) continue;
    auto best = std::ranges::find_if(
        spares_, [](const Member& spare) { return spare.ready && !spare.without_shim; });
    if (best == spares_.end()) best = spares_.begin();
    Member member = std::move(*best);
    spares_.erase(best);
    Take(slot, std::move(member));
  }
}

Gang::Member Gang::Unseat(Slot& slot) {
  Member member = std::move(*slot.member);
  slot.member.reset();
  return member;
}

void Gang::Take(Slot& slot, Member member) {
  slot.member = std::move(member);
  slot.answered = true;  // of what was ordered before it came
  slot.member->node->Send(order::Seat{slot.ranks.first});
}

std::uint32_t Gang::Seated() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(slots_, [](const Slot& slot) { return slot.member.has_value(); }));
}

/// All are there; or enough are, and nobody else is waited for.
bool Gang::MayStart() {
  const std::uint32_t seated = Seated();
  if (seated == options_.slots) return true;
  if (seated < options_.least) {
    enough_since_.reset();
    return false;
  }
  const Instant now = loop_.Now();
  if (!enough_since_) enough_since_ = now;
  return restarting_ || now - *enough_since_ >= options_.last_call;
}

/// Who sits behind the slots that work takes the place of who was lost of them.
void Gang::FillUp() {
  std::size_t behind = active_;
  for (std::size_t i = 0; i < active_; ++i) {
    while (behind < slots_.size() && !slots_[behind].member) ++behind;
    if (behind == slots_.size()) return;
    if (!slots_[i].member) Take(slots_[i], Unseat(slots_[behind]));
  }
}

/// Every slot of the last generation has a node.
bool Gang::IsWhole() const {
  return std::all_of(slots_.begin(), slots_.begin() + active_,
                     [](const Slot& slot) { return slot.member.has_value(); });
}

/// Ranks are numbered without a gap: who sits behind an empty slot moves up.
void Gang::Compact() {
  std::size_t to = 0;
  for (std::size_t from = 0; from < slots_.size(); ++from) {
    if (!slots_[from].member) continue;
    if (from != to) Take(slots_[to], Unseat(slots_[from]));
    ++to;
  }
}

/// True when the number of ranks is another one than before.
bool Gang::Resize(const order::Start& start) {
  // Survivors that go on are not stopped for those that joined.
  if (!start.keepers.empty() && IsWhole()) return false;
  Compact();
  active_ = Seated();
  if (active_ == told_ && !clearing_) return false;
  TellSize();
  return true;
}

void Gang::Send(const Order& order) {
  std::visit([this](const auto& what) { Do(what); }, order);
}

void Gang::Poll() {
  for (Slot& slot : slots_) {
    if (slot.member) slot.member->node->Poll();
  }
}

void Gang::Do(const order::Start& order) {
  start_ = order;
  restarting_ = order.generation > Generation(1);
  waits_since_ = loop_.Now();
  enough_since_.reset();
  Seat();
  if (!MayStart()) TellWaiting();
  StartWhenComplete();
}

bool Gang::AnyWorks() const { return std::ranges::any_of(slots_, &Slot::working); }

bool Gang::MustClear() const { return !start_->keepers.empty() && !IsWhole() && AnyWorks(); }

void Gang::TellSize() {
  told_ = Seated();
  Tell(report::Resized{told_ * options_.ranks_per_slot});
}

/// The coordinator hears of the new size first: to it no rank of the old ones runs any more. From
/// here on every rank begins anew, whoever joins in the meantime.
void Gang::Clear() {
  clearing_ = true;
  start_->keepers.clear();
  TellSize();
  for (Slot& slot : slots_) {
    if (slot.working) OrderStop(slot, {generation_, SIGTERM, {}});
  }
}

void Gang::OrderStop(Slot& slot, const order::Stop& order) {
  slot.stop = order.generation;
  slot.member->node->Send(order);
}

/// By slot. One pass over the ranks: there may be as many slots as ranks.
std::vector<order::Start> Gang::PartsOf(order::Start whole, bool resized) const {
  const std::vector<Rank> ranks = std::exchange(whole.ranks, {});
  const std::vector<Rank> keepers = std::exchange(whole.keepers, {});
  whole.world = active_ * options_.ranks_per_slot;
  std::vector<order::Start> parts(active_, whole);
  if (resized) {
    for (std::uint32_t rank = 0; rank < whole.world; ++rank) {
      parts[rank / options_.ranks_per_slot].ranks.emplace_back(rank);
    }
    return parts;
  }
  for (const Rank rank : ranks) parts[rank.value() / options_.ranks_per_slot].ranks.push_back(rank);
  for (const Rank rank : keepers) {
    parts[rank.value() / options_.ranks_per_slot].keepers.push_back(rank);
  }
  return parts;
}

void Gang::StartWhenComplete() {
  if (!start_ || !MayStart()) return;
  FillUp();
  if (!clearing_ && MustClear()) Clear();
  if (clearing_ && AnyWorks()) return;
  if (waiting_) loop_.Remove(*std::exchange(waiting_, {}));
  const order::Start whole = *std::exchange(start_, {});
  generation_ = whole.generation;
  const bool resized = Resize(whole);
  clearing_ = false;
  const std::vector<order::Start> parts = PartsOf(whole, resized);
  for (std::uint32_t i = 0; i < active_; ++i) {
    Slot& slot = slots_[i];
    slot.working = true;
    // What a node answers may cost it its slot, or its shim once more, or end the start.
    if (std::exchange(slot.member->without_shim, false)) slot.member->node->Send(order::Renew{});
    if (slot.member && slot.working) slot.member->node->Send(parts[i]);
  }
}

void Gang::TellWaiting() {
  const auto waited = loop_.Now() - waits_since_;
  if (waited >= options_.join_limit && Seated() < options_.least) {
    start_.reset();
    return Tell(report::Failed{
        Error(Code::kDeadline,
              fmt::format("{} of {} did not come within {} s",
                          Counted(options_.least - Seated(), "node"), options_.least,
                          std::chrono::duration_cast<std::chrono::seconds>(waited).count()),
              "start 'muster agent' on them, or ask for fewer nodes")});
  }
  Tell(report::Waiting{options_.slots - Seated(), options_.slots, waited});
  const bool enough = Seated() >= options_.least;
  const auto again =
      enough ? std::min<nanoseconds>(kWaitingTold, options_.last_call) : kWaitingTold;
  waiting_ = loop_.After(again, [this] {
    waiting_.reset();
    if (start_ && !MayStart()) TellWaiting();
    StartWhenComplete();
  });
}

void Gang::Do(const order::Renew& order) {
  for (Slot& slot : slots_) {
    if (!slot.member) continue;
    slot.member->without_shim = false;
    slot.member->node->Send(order);
  }
}

void Gang::Do(const order::Stop& order) {
  start_.reset();
  clearing_ = false;
  if (!stopping_) stopping_.emplace();
  stopping_->generation = order.generation;
  // Where nothing runs nobody is waited for.
  for (Slot& slot : slots_) slot.answered = !slot.working;
  for (Slot& slot : slots_) {
    if (!slot.answered) OrderStop(slot, order);
  }
  AnswerIfAllDid();
}

/// It may be cut off, and shorter than its lease; the others are not to wait for that. The node of
/// this process can do without its shim.
void Gang::Do(const order::GiveUp& order) {
  for (Slot& slot : slots_) {
    if (slot.answered || !slot.member) continue;
    if (slot.member->who.agent.empty()) {
      slot.member->node->Send(order);
    } else {
      On(slot, report::Gone{"it did not stop its workers in time"});
    }
  }
}

void Gang::Do(const order::End& order) {
  start_.reset();
  stopping_.reset();
  ending_.emplace();
  for (Member& spare : spares_) spare.node->Send(order);
  for (Slot& slot : slots_) slot.answered = !slot.member || slot.member->ended;
  end_timer_ = loop_.After(options_.end_limit, [this] {
    end_timer_.reset();
    for (Slot& slot : slots_) slot.answered = true;
    spares_.clear();
    AnswerIfAllDid();
  });
  for (Slot& slot : slots_) {
    if (!slot.answered) slot.member->node->Send(order);
  }
  AnswerIfAllDid();
}

void Gang::Do(const order::Kill& order) {
  Slot& slot = SlotOf(order.rank);
  if (slot.member) slot.member->node->Send(order);
}

void Gang::Do(const order::TellWords& order) {
  Slot& slot = SlotOf(order.rank);
  if (slot.member) return slot.member->node->Send(order);
  Tell(report::Words{order.rank, order.spawned});  // they went with the node
}

void Gang::Hear(std::uint64_t member, Report report) {
  Slot* slot = SlotOf(member);
  if (slot == nullptr) {
    const auto spare = std::ranges::find(spares_, member, &Member::id);
    if (spare != spares_.end()) HearSpare(spare, report);
    return;
  }
  const bool works = static_cast<std::uint32_t>(slot - slots_.data()) < active_;
  std::visit(
      [&](auto& what) {
        if constexpr (requires { On(*slot, what); }) {
          On(*slot, what);
        } else if (works && (!clearing_ || kTellsOfThePast<std::remove_cvref_t<decltype(what)>>)) {
          Tell(std::move(what));
        }
      },
      report);
}

void Gang::HearSpare(std::deque<Member>::iterator spare, const Report& report) {
  if (std::holds_alternative<report::Lost>(report)) spare->without_shim = true;
  if (std::holds_alternative<report::ZygoteReady>(report) ||
      std::holds_alternative<report::ZygoteBroken>(report)) {
    spare->ready = true;
  }
  const bool over = ending_ && std::holds_alternative<report::Ended>(report);
  if (!over && !std::holds_alternative<report::Gone>(report)) return;
  Bury(std::move(*spare));
  spares_.erase(spare);
  AnswerIfAllDid();
}

void Gang::On(Slot& slot, const report::Stopped& report) {
  if (report.generation < slot.stop) return;
  if (clearing_) {
    slot.working = false;
    return StartWhenComplete();
  }
  if (!stopping_) return;
  stopping_->left += report.left;
  slot.answered = true;
  slot.working = false;
  AnswerIfAllDid();
}

void Gang::On(Slot& slot, const report::Ended& report) {
  if (!ending_) return;
  ending_->hung_writer = ending_->hung_writer || report.hung_writer;
  if (!report.left_cgroup.empty()) ending_->left_cgroup = report.left_cgroup;
  slot.answered = slot.member->ended = true;
  AnswerIfAllDid();
}

/// At the job's start a host that cannot do its part is a mistake that somebody must hear of; later
/// the job goes on without it.
void Gang::On(Slot& slot, const report::Failed& report) {
  if (!restarting_) return Tell(report);
  On(slot, report::Gone{report.error.message()});
}

void Gang::On(Slot& slot, const report::Lost& report) {
  slot.member->without_shim = true;
  Lose(slot, {.name = slot.member->who.name, .reason = report.reason, .shim = true});
}

void Gang::On(Slot& slot, const report::Gone& report) {
  Member member = Unseat(slot);
  const std::string name = member.who.name;
  const bool told = member.without_shim;
  Bury(std::move(member));
  if (!told) return Lose(slot, {.name = name, .reason = report.reason, .since = report.since});
  slot.answered = true;
  AnswerIfAllDid();
}

/// Where nothing runs no rank is lost.
void Gang::Lose(Slot& slot, report::NodeLost lost) {
  const bool known = slot.working && !clearing_;
  lost.ranks = {slot.ranks.first, known ? slot.ranks.count : 0};
  slot.working = false;
  Tell(std::move(lost));
  slot.answered = true;
  if (clearing_ && !MayStart() && !waiting_) TellWaiting();
  if (clearing_) StartWhenComplete();
  AnswerIfAllDid();
}

void Gang::Bury(Member member) {
  buried_.push_back(std::move(member));
  if (burial_) return;
  burial_ = loop_.After(nanoseconds(0), [this] {
    burial_.reset();
    buried_.clear();
  });
}

void Gang::AnswerIfAllDid() {
  if (!std::ranges::all_of(slots_, &Slot::answered)) return;
  if (ending_ && !spares_.empty()) return;
  if (ending_) {
    if (end_timer_) loop_.Remove(*std::exchange(end_timer_, {}));
    Tell(*std::exchange(ending_, {}));
  } else if (stopping_) {
    Tell(*std::exchange(stopping_, {}));
  }
}

Gang::Slot* Gang::SlotOf(std::uint64_t member) {
  const auto found = std::ranges::find_if(
      slots_, [&](const Slot& slot) { return slot.member && slot.member->id == member; });
  return found == slots_.end() ? nullptr : &*found;
}

Gang::Slot& Gang::SlotOf(Rank rank) { return slots_[rank.value() / options_.ranks_per_slot]; }

}  // namespace muster::agent

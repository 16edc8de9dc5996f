#include "agent/simulation/host_model.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/host_name.h"

namespace muster::agent::simulation {

/// What a coordinator has of it; gone with that.
class HostModel::View final : public Node {
 public:
  explicit View(HostModel& host) : host_(host) {}
  ~View() override { host_.listener_ = {}; }
  void Send(const Order& order) override { host_.Take(order); }
  void Poll() override { host_.node_->Poll(); }

 private:
  HostModel& host_;
};

HostModel::HostModel(Ground& ground, std::uint32_t ranks)
    : ground_(ground),
      life_(ground.world.loop()),
      name_(HostName()),
      node_(std::make_unique<NodeModel>(ground.world, ground.truth, ground.program, ground.mishaps,
                                        name_, ranks,
                                        [this](const Report& report) { Hear(report); })) {}

std::unique_ptr<Node> HostModel::Attach(OnReport on_report, const std::optional<NodePlace>& place) {
  auto view = std::make_unique<View>(*this);
  listener_ = std::move(on_report);
  if (place) {
    life_.After({}, [this, place = *place, deaths = ground_.fate.deaths()] {
      if (listener_ && deaths == ground_.fate.deaths()) Resume(place);
    });
  }
  return view;
}

/// What the one before may have missed: a loss, or ends. One whose loss was heard has a new shim
/// with the process that follows.
void HostModel::Resume(const NodePlace& place) {
  if (!node_->has_shim() && !loss_heard_) return node_->MissLossAgain();
  if (!node_->has_shim()) Take(order::Renew{});
  const std::vector<report::Exited> exits = exits_;
  for (const report::Exited& exited : exits) Deliver(exited);
  for (std::uint32_t i = 0; i < place.runs.size(); ++i) {
    const Rank rank(place.first + i);
    const auto told = [&](const report::Exited& exited) { return exited.rank == rank; };
    if (place.runs[i] == 0 || node_->Runs(rank) || std::ranges::any_of(exits, told)) continue;
    Deliver(report::Exited{.rank = rank,
                           .spawned = place.spawned[i],
                           .ending = {.signal = SIGKILL, .time = ground_.world.Now()}});
  }
}

void HostModel::KillShim() {
  if (!node_->has_shim()) return;
  ground_.world.Note("the shim of the coordinator's host dies");
  ground_.truth.Disturbed(name_);
  node_->KillShim();
}

void HostModel::Take(const Order& order) {
  if (std::holds_alternative<order::Renew>(order)) loss_heard_ = false;
  node_->Send(order);
}

void HostModel::Hear(const Report& report) {
  if (const auto* exited = std::get_if<report::Exited>(&report)) exits_.push_back(*exited);
  if (std::holds_alternative<report::Stopped>(report)) exits_.clear();
  const bool lost = std::holds_alternative<report::Lost>(report);
  if (lost) exits_.clear();
  const bool heard = Deliver(report);
  if (lost && !node_->has_shim()) loss_heard_ = heard;  // by now there may be another
}

/// False when nobody hears it, or who did died of it.
bool HostModel::Deliver(const Report& report) {
  if (!listener_) return false;
  if (!ground_.fate.inside()) return ground_.fate.Play([&] { listener_(report); });
  listener_(report);
  return true;
}

}  // namespace muster::agent::simulation

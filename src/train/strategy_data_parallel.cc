#include "train/strategy_data_parallel.h"

#include <array>
#include <string>

#include "train/backward.h"
#include "train/sums.h"

namespace muster::train {
namespace {

constexpr std::size_t kMostInFlight = 64;  // coll::Group::Start

}  // namespace

DataParallel::DataParallel(FlatModel& model, coll::Group& group, const DataParallelOptions& options)
    : model_(&model), group_(&group), options_(options), tree_(options.passes) {
  model.OnUnitReady([this](Unit& unit) { UnitReady(unit); });
}

Status DataParallel::BeginStep(double count) {
  pass_ = 0;
  losses_.clear();
  pending_.clear();
  waited_ = 0;
  ready_.assign(model_->units().size(), false);
  left_ = ready_.size();
  status_ = Ok();
  std::array<double, 1> total{count};
  MUSTER_TRY(Collective([&] { return group_->AllReduceDouble(total, "loss count"); }));
  global_count_ = total[0];
  if (global_count_ > 0) return Ok();
  return Error(Code::kInvalid, "no rank has a sample with weight in this step");
}

void DataParallel::BeginPass() { model_->BeginPass(); }

Status DataParallel::Backward(const nn::LossSum& loss) {
  MUSTER_CHECK(pass_ < options_.passes);
  losses_.push_back(loss.sum.item<double>());
  MUSTER_TRY(RunBackward(loss.sum, 1 / global_count_));
  model_->EndPass();
  ++pass_;
  return status_;
}

void DataParallel::UnitReady(Unit& unit) {
  std::size_t index = 0;
  while (model_->units()[index].get() != &unit) ++index;
  tree_.Join(index, pass_, unit.gradients());
  if (pass_ + 1 < options_.passes) return;
  ready_[index] = true;
  ReduceInOrder();
}

void DataParallel::ReduceInOrder() {
  while (left_ > 0 && ready_[left_ - 1] && status_) {
    --left_;
    status_ = Reduce(*model_->units()[left_]);
  }
}

Status DataParallel::Reduce(Unit& unit) {
  if (options_.overlap == Overlap::kInline) {
    return Collective([&] { return group_->AllReduce(unit.gradients(), "gradients"); });
  }
  if (group_->world() == 1) return Ok();
  if (pending_.size() - waited_ == kMostInFlight) {
    MUSTER_TRY(Collective([&] { return WaitDownTo(kMostInFlight / 2); }));
  }
  pending_.push_back(MUSTER_TRY(group_->Start(unit.gradients(), "gradients")));
  return Ok();
}

Status DataParallel::WaitDownTo(std::size_t most) {
  while (pending_.size() - waited_ > most) {
    MUSTER_TRY(group_->Wait(pending_[waited_]));
    ++waited_;
  }
  return Ok();
}

Result<double> DataParallel::FinishStep() {
  MUSTER_CHECK(pass_ == options_.passes && left_ == 0);
  std::array<double, 1> sum{TreeSum(losses_)};
  MUSTER_TRY(Collective([&]() -> Status {
    MUSTER_TRY(WaitDownTo(0));
    return group_->AllReduceDouble(sum, "loss sum");
  }));
  return sum[0] / global_count_;
}

Status DataParallel::Collective(const std::function<Status()>& body) const {
  if (group_->world() == 1) return Ok();
  return options_.around_collective ? options_.around_collective(body) : body();
}

}  // namespace muster::train

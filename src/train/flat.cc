#include "train/flat.h"

#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/function_hook.h>

#include <cstdlib>
#include <numeric>
#include <utility>

namespace muster::train {
namespace {

constexpr std::size_t kAlignBytes = kAlignFloats * sizeof(float);

std::int64_t Padded(std::int64_t length) {
  return (length + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
}

std::int64_t PaddedLength(const Unit& unit) {
  std::int64_t length = 0;
  for (const auto& parameter : unit.parameters()) length += Padded(parameter->length);
  return length;
}

// Runs when autograd has added a gradient into its preset tensor.
class CountHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit CountHook(std::function<void()> count) : count_(std::move(count)) {}
  void operator()(const torch::autograd::Variable&) override { count_(); }

 private:
  std::function<void()> count_;
};

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

/// Zeroed; nullptr when there is none.
std::unique_ptr<void, Free> Zeroed(std::size_t bytes) {
  std::unique_ptr<void, Free> memory(std::aligned_alloc(kAlignBytes, bytes));
  if (memory) std::memset(memory.get(), 0, bytes);
  return memory;
}

}  // namespace

struct FlatModel::Memory {
  std::vector<std::unique_ptr<void, Free>> values;
  std::unique_ptr<void, Free> gradients;  // unless they are the caller's
  // Autograd holds an accumulator weakly; without ours the hook would die with the first graph.
  std::vector<c10::intrusive_ptr<torch::autograd::Node>> accumulators;
};

void Parameter::CountUse() {
  if (!direct_) {
    direct_ = true;
    --unit_->pending_;  // BeginPass had counted on autograd
  }
  ++unit_->pending_;
}

void Parameter::Written() {
  written_ = true;
  unit_->CountDown();
}

Parameter& Unit::Add(std::string name, std::vector<std::int64_t> shape) {
  MUSTER_CHECK(values_.empty());
  auto parameter = std::make_unique<Parameter>();
  parameter->name = name_ + "." + std::move(name);
  parameter->length =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  parameter->shape = std::move(shape);
  parameter->offset = PaddedLength(*this);
  parameter->unit_ = this;
  return *parameters_.emplace_back(std::move(parameter));
}

void Unit::BeginPass() {
  pending_ = 0;
  ready_ = false;
  for (const auto& parameter : parameters_) {
    parameter->written_ = false;
    if (parameter->direct_) continue;
    ++pending_;
    std::fill_n(gradients_.begin() + parameter->offset, parameter->length, 0.0F);
  }
}

void Unit::CountDown() {
  if (--pending_ == 0) Finish();
}

void Unit::Finish() {
  ready_ = true;
  for (const auto& parameter : parameters_) {
    if (!parameter->direct_ || parameter->written_) continue;
    std::fill_n(gradients_.begin() + parameter->offset, parameter->length, 0.0F);
  }
  if (*on_ready_) (*on_ready_)(*this);
}

FlatModel::FlatModel()
    : on_ready_(std::make_unique<std::function<void(Unit&)>>()),
      memory_(std::make_unique<Memory>()) {}

FlatModel::~FlatModel() = default;

Unit& FlatModel::AddUnit(std::string name) {
  Unit& unit = *units_.emplace_back(std::make_unique<Unit>(std::move(name)));
  unit.on_ready_ = on_ready_.get();
  return unit;
}

std::size_t FlatModel::GradientBytes() const {
  std::size_t bytes = 0;
  for (const auto& unit : units_) bytes += PaddedLength(*unit) * sizeof(float);
  return bytes;
}

std::int64_t FlatModel::ParameterCount() const {
  std::int64_t count = 0;
  for (const auto& unit : units_) {
    for (const auto& parameter : unit->parameters()) count += parameter->length;
  }
  return count;
}

/// Memory for all units' gradients.
Result<float*> FlatModel::TakeGradients(const Allocate& gradients) {
  // All of them or none: an arena gives nothing back, so a part of what was asked for would be lost
  // to whoever asks next.
  const std::size_t all = GradientBytes();
  auto own = gradients ? nullptr : Zeroed(all);
  void* grads = gradients ? gradients(all) : own.get();
  if (grads == nullptr) {
    return Error(Code::kExhausted, "no memory for the gradients of " +
                                       std::to_string(units_.size()) + " units, " +
                                       std::to_string(all) + " bytes");
  }
  memory_->gradients = std::move(own);
  return static_cast<float*>(grads);
}

Status FlatModel::RebindGradients(const Allocate& gradients) {
  auto* next = MUSTER_TRY(TakeGradients(gradients));
  for (const auto& unit : units_) {
    unit->gradients_ = {next, unit->values_.size()};
    next += unit->values_.size();
    BindGradients(*unit);
  }
  return Ok();
}

void FlatModel::BindGradients(Unit& unit) {
  for (const auto& parameter : unit.parameters_) {
    parameter->gradient =
        at::from_blob(unit.gradients_.data() + parameter->offset, parameter->shape);
    parameter->value.mutable_grad() = parameter->gradient;
  }
}

Status FlatModel::Materialize(const Allocate& gradients) {
  auto* next = MUSTER_TRY(TakeGradients(gradients));
  for (const auto& unit : units_) {
    const auto length = static_cast<std::size_t>(PaddedLength(*unit));
    const std::size_t bytes = length * sizeof(float);
    MUSTER_CHECK(length > 0);
    auto values = Zeroed(bytes);
    if (!values) {
      return Error(Code::kExhausted, "no memory for the parameters of unit " + unit->name() + ", " +
                                         std::to_string(bytes) + " bytes");
    }
    unit->values_ = {static_cast<float*>(values.get()), length};
    memory_->values.push_back(std::move(values));
    unit->gradients_ = {next, length};
    next += length;
    Bind(*unit);
  }
  return Ok();
}

void FlatModel::Bind(Unit& unit) {
  for (const auto& owned : unit.parameters_) {
    Parameter* parameter = owned.get();
    parameter->value = at::from_blob(unit.values_.data() + parameter->offset, parameter->shape);
    parameter->value.requires_grad_(true);
    auto hook = std::make_unique<CountHook>([parameter, &unit] {
      // One parameter may not get gradients both from our operations and from autograd.
      MUSTER_CHECK(!parameter->direct_);
      unit.CountDown();
    });
    torch::autograd::impl::set_post_acc_grad_hooks(parameter->value, std::move(hook));
    memory_->accumulators.push_back(torch::autograd::impl::grad_accumulator(parameter->value));
  }
  BindGradients(unit);
}

void FlatModel::BeginPass() {
  for (const auto& unit : units_) unit->BeginPass();
}

void FlatModel::EndPass() {
  for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit) {
    if (!(*unit)->ready_) (*unit)->Finish();
  }
}

}  // namespace muster::train

#pragma once
// The model's memory: units (a transformer block, the stem, the head), each with one flat buffer of
// parameters and one of gradients in which every parameter starts on 64 bytes. A unit is what is
// reduced, clipped, updated and saved together; the index (name, shape, offset, length) is all that
// checkpoints know about a model.
//
// Parameters and gradients are from_blob tensors, one each: views of one flat tensor would share a
// version counter, and a raw write to one would make backward throw for all. A gradient is always
// defined. It is filled in one of two ways: by our own operations, which write it straight into the
// flat buffer (nn/), or by autograd, which adds to it. Either way the unit counts, and when the
// last gradient of a pass is there, `on_ready` runs, on the training thread, inside backward.
//
// One training thread. The model owns parameter memory; gradient memory comes from the caller (a
// collective arena) and must outlive it.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::train {

class Unit;

/// Floats a parameter's start is aligned to: 64 bytes, the widest vector.
inline constexpr std::int64_t kAlignFloats = 16;

struct Parameter {
  std::string name;  ///< "block.0.qkv.weight"
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;  ///< floats from the start of the unit's buffers
  std::int64_t length = 0;
  at::Tensor value;     ///< leaf tensor over the unit's parameter buffer
  at::Tensor gradient;  ///< the same tensor as value.grad(), over the gradient buffer

  /// Forward of an operation that will write this gradient itself.
  void CountUse();
  /// 0 when the gradient holds nothing of this pass and is to be overwritten, else 1.
  float Beta() const { return written_ ? 1.0F : 0.0F; }
  /// Backward of such an operation has added its part.
  void Written();

 private:
  friend class FlatModel;
  friend class Unit;
  Unit* unit_ = nullptr;
  bool direct_ = false;   // filled by our own operations, found out at the first use
  bool written_ = false;  // in this pass
};

class Unit {
 public:
  explicit Unit(std::string name) : name_(std::move(name)) {}
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  /// Only before FlatModel::Materialize. The reference stays valid.
  Parameter& Add(std::string name, std::vector<std::int64_t> shape);

  const std::string& name() const { return name_; }
  const std::vector<std::unique_ptr<Parameter>>& parameters() const { return parameters_; }
  std::span<float> values() const { return values_; }        ///< padded
  std::span<float> gradients() const { return gradients_; }  ///< padded; the padding is zero

 private:
  friend class FlatModel;
  friend struct Parameter;
  void BeginPass();
  void CountDown();
  void Finish();  // every gradient is there: zeroes unused ones and reports

  std::string name_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::span<float> values_;
  std::span<float> gradients_;
  std::int64_t pending_ = 0;
  bool ready_ = false;
  std::function<void(Unit&)>* on_ready_ = nullptr;
};

/// Zeroed memory of at least `bytes`, on 64 bytes; nullptr when there is none.
using Allocate = std::function<void*(std::size_t bytes)>;

class FlatModel {
 public:
  FlatModel();
  FlatModel(const FlatModel&) = delete;
  FlatModel& operator=(const FlatModel&) = delete;
  ~FlatModel();

  /// Units in the order of forward. The reference stays valid.
  Unit& AddUnit(std::string name);
  /// Allocates all buffers; parameters are zero. An empty `gradients` takes private memory.
  Status Materialize(const Allocate& gradients = {});
  /// Moves the gradients to other memory, whose owner has changed. What they held is lost; the old
  /// memory is not touched.
  Status RebindGradients(const Allocate& gradients);
  /// Bytes that Materialize will ask of `gradients`, padding included.
  std::size_t GradientBytes() const;

  const std::vector<std::unique_ptr<Unit>>& units() const { return units_; }
  std::int64_t ParameterCount() const;

  /// Called for each unit once a pass, when its gradients of the pass are complete.
  void OnUnitReady(std::function<void(Unit&)> callback) { *on_ready_ = std::move(callback); }
  /// Before the forward of a pass (one micro-batch).
  void BeginPass();
  /// After its backward: units that autograd did not complete are completed with zeros, last unit
  /// first.
  void EndPass();

 private:
  struct Memory;
  Result<float*> TakeGradients(const Allocate& gradients);
  void Bind(Unit& unit);
  static void BindGradients(Unit& unit);
  std::vector<std::unique_ptr<Unit>> units_;
  std::unique_ptr<std::function<void(Unit&)>> on_ready_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace muster::train

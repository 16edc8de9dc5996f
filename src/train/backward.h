#pragma once
// The one place that runs autograd's engine, and turns what torch throws into an Error.

#include <ATen/core/Tensor.h>

#include <functional>

#include "base/result.h"

namespace muster::train {

/// Backward from a scalar with the gradient `scale`, on this thread (no other is started for CPU
/// tensors).
Status RunBackward(const at::Tensor& scalar, double scale);

/// Runs code that calls torch or a recipe; its exceptions become errors: Exhausted when memory was
/// short, else Bug (shapes and types are our own).
Status Guarded(const char* what, const std::function<Status()>& body);

}  // namespace muster::train

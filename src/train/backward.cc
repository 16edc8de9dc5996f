#include "train/backward.h"

#include <ATen/ops/full.h>
#include <torch/csrc/autograd/autograd.h>

namespace muster::train {

Status RunBackward(const at::Tensor& scalar, double scale) {
  return Guarded("backward", [&] {
    torch::autograd::backward({scalar}, {at::full({}, scale, scalar.options())});
    return Ok();
  });
}

Status Guarded(const char* what, const std::function<Status()>& body) {
  try {
    return body();
  } catch (const c10::Error& error) {
    return Error(Code::kBug, std::string(what) + ": " + error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return Error(Code::kExhausted, std::string(what) + ": out of memory");
  }
}

}  // namespace muster::train

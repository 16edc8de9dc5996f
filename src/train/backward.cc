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
  const auto failed = [what](Code code, const std::string& why) {
    return Error(code, std::string(what) + ": " + why);
  };
  try {
    return body();
  } catch (const c10::Error& error) {
    const std::string why = error.what_without_backtrace();
    // How torch's CPU allocator says it.
    const bool memory = why.find("DefaultCPUAllocator") != std::string::npos;
    return failed(memory ? Code::kExhausted : Code::kBug, why);
  } catch (const std::bad_alloc&) {
    return failed(Code::kExhausted, "out of memory");
  } catch (const std::exception& error) {
    return failed(Code::kBug, error.what());
  }
}

}  // namespace muster::train

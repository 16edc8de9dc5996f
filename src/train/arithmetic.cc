#include "train/arithmetic.h"

#include <dlfcn.h>
#include <torch/version.h>

namespace muster::train {
namespace {

// mkl_types.h of MKL 2024; the header is not in the torch wheel.
constexpr int kMklAllSettings = ~0;
constexpr int kMklStrict = 0x10000;
constexpr int kMklCompatible = 3;
constexpr int kMklAvx2 = 10;
constexpr int kMklSuccess = 0;

struct MklEntry {
  int (*get)(int) = nullptr;
  int (*auto_branch)() = nullptr;
  int (*set)(int) = nullptr;
};

template <typename Function>
void Find(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

MklEntry FindMkl() {
  MklEntry mkl;
  Find("mkl_serv_cbwr_get", mkl.get);
  Find("mkl_serv_cbwr_get_auto_branch", mkl.auto_branch);
  Find("mkl_serv_cbwr_set", mkl.set);
  return mkl;
}

std::string BranchName(int setting) {
  const int branch = setting & ~kMklStrict;
  std::string name = branch == kMklCompatible ? "compatible"
                     : branch == kMklAvx2     ? "avx2"
                     : branch > kMklAvx2      ? "avx512-" + std::to_string(branch)
                                              : "branch-" + std::to_string(branch);
  return (setting & kMklStrict) != 0 ? name + ",strict" : name;
}

Result<std::string> PinMkl() {
  const MklEntry mkl = FindMkl();
  if (mkl.get == nullptr || mkl.auto_branch == nullptr || mkl.set == nullptr) {
    return std::string("none");
  }
  const int branch = mkl.auto_branch();
  // STRICT makes bits independent of alignment; branches below AVX2 do not offer it.
  const int wanted = branch >= kMklAvx2 ? branch | kMklStrict : branch;
  if (mkl.get(kMklAllSettings) == wanted) return BranchName(wanted);
  const int status = mkl.set(wanted);
  if (status != kMklSuccess) {
    return Error(Code::kUnavailable,
                 "MKL refused the reproducible code path " + BranchName(wanted) + " with status " +
                     std::to_string(status),
                 "pin the arithmetic before the first matrix product");
  }
  return BranchName(wanted);
}

}  // namespace

std::map<std::string, std::string> Arithmetic::ToMap() const {
  return {{"torch", torch_version}, {"cpu_capability", cpu_capability}, {"mkl_cbwr", mkl_branch}};
}

Result<Arithmetic> PinArithmetic() {
  at::set_num_threads(1);
  Arithmetic arithmetic;
  arithmetic.mkl_branch = MUSTER_TRY(PinMkl());
  arithmetic.torch_version = TORCH_VERSION;
  arithmetic.cpu_capability = at::get_cpu_capability();
  return arithmetic;
}

}  // namespace muster::train

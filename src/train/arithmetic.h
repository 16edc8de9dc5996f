#pragma once
// Pins everything that decides the bits of a floating-point result on this machine: one thread, and
// a fixed, alignment-independent code path in MKL (its "conditional numerical reproducibility"; set
// before MKL's first call, later it cannot change). Costs nothing measurable, so fast mode has it
// too.
//
// Called first in every process that computes, on its only thread; again after a fork is fine.
// Unavailable when MKL was already used with other settings.

#include <map>
#include <string>

#include "base/result.h"

namespace muster::train {

/// What bits depend on. Goes into the checkpoint: resuming where it differs continues correctly,
/// but not with the same bits.
struct Arithmetic {
  std::string torch_version;   ///< "2.13.0"
  std::string cpu_capability;  ///< the branch of torch's own kernels: "AVX512"
  std::string mkl_branch;      ///< "avx512,strict"; "none" in a torch without MKL

  /// By the names that checkpoints give them: torch, cpu_capability, mkl_cbwr.
  std::map<std::string, std::string> ToMap() const;
};

Result<Arithmetic> PinArithmetic();

}  // namespace muster::train

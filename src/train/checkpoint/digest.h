#pragma once
// One number for what a checkpoint holds: SHA-256 over its logical tensors in order of group and
// name, each with dtype and shape. It does not depend on the number of ranks, slices, padding or
// files, so two runs that computed the same bits have the same digest. The definition is in
// docs/formats/checkpoint.md; an independent reader in tests/ computes it again.

#include <string>
#include <vector>

#include "train/checkpoint/open.h"

namespace muster::checkpoint {

enum class Scope {
  kAll,     ///< every group
  kParams,  ///< the group "param" only
};

/// 64 hex digits.
Result<std::string> Digest(Checkpoint& checkpoint, Scope scope);

struct TensorDifference {
  std::string group;
  std::string name;
  std::uint64_t elements = 0;
  std::uint64_t unequal = 0;  ///< elements whose bits differ
  double max_abs = 0;         ///< NaN when one of a pair is
  std::uint64_t max_ulp = 0;  ///< steps between neighbours of the dtype; integers: |a − b|
};

/// One entry for each tensor, in the digest's order. Precondition when the two hold other tensors.
Result<std::vector<TensorDifference>> Diff(Checkpoint& a, Checkpoint& b, Scope scope);

/// Writes tensors of one group as a plain safetensors file that any reader opens. AlreadyExists
/// when `path` is there.
Status Export(Checkpoint& checkpoint, FileSystem& files, std::string_view group,
              const std::string& path);

}  // namespace muster::checkpoint

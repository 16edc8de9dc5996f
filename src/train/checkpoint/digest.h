#pragma once
// One number for what a checkpoint holds: SHA-256 over its logical tensors in order of group and
// name, each with dtype and shape. It does not depend on the number of ranks, slices, padding or
// files, so two runs that computed the same bits have the same digest. The definition is in
// docs/formats/checkpoint.md; an independent reader in tests/ computes it again.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/checkpoint/open.h"

namespace muster::checkpoint {

/// Stands for every group where one is asked for by name.
inline constexpr std::string_view kAllGroups = "all";

/// 64 hex digits. `group` is one's name or kAllGroups; NotFound when the checkpoint has no such.
Result<std::string> Digest(Checkpoint& checkpoint, std::string_view group);

struct TensorName {
  std::string group;
  std::string name;
};

struct TensorDifference {
  std::string group;
  std::string name;
  std::uint64_t elements = 0;
  std::uint64_t unequal = 0;  ///< elements whose bits differ
  double max_abs = 0;         ///< NaN when one of a pair is
  std::uint64_t max_at = 0;   ///< the first element that is max_abs apart
  std::uint64_t max_ulp = 0;  ///< steps between neighbours of the dtype; integers: |a − b|
};

struct Difference {
  std::vector<TensorDifference> tensors;  ///< those that both hold alike, in the digest's order
  std::vector<TensorName> unlike;         ///< both hold it, with another dtype or shape
  std::vector<TensorName> only_a;
  std::vector<TensorName> only_b;

  bool BitwiseEqual() const;
};

/// How far apart the tensors of `group` (or kAllGroups) are. NotFound when neither has the group.
Result<Difference> Diff(Checkpoint& a, Checkpoint& b, std::string_view group);

/// Writes tensors of one group as a plain safetensors file that any reader opens. AlreadyExists
/// when `path` is there, NotFound when the checkpoint has no such group.
Status Export(Checkpoint& checkpoint, FileSystem& files, std::string_view group,
              const std::string& path);

}  // namespace muster::checkpoint

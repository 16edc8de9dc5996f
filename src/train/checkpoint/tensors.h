#pragma once
// The tensors of a checkpoint in the order of its digest, and walking one of them in bounded
// pieces.

#include <functional>
#include <string>
#include <vector>

#include "train/checkpoint/digest.h"

namespace muster::checkpoint {

struct TensorRef {
  std::string group;
  DType dtype = DType::kF32;
  const IndexEntry* entry = nullptr;  ///< lives in the manifest
};

/// The order of digests: groups in byte order of their names, tensors in byte order of theirs.
bool IsBefore(const TensorRef& a, const TensorRef& b);

/// In that order; of one group, or of all
/// (kAllGroups). NotFound, naming the groups that are there, when it is none of them.
Result<std::vector<TensorRef>> TensorsOf(const Manifest& manifest, std::string_view group);

/// Hands the tensor's bytes on in pieces of at most 4 MiB.
Status ForEachPiece(Checkpoint& checkpoint, const TensorRef& tensor,
                    const std::function<Status(ByteSpan)>& piece);

}  // namespace muster::checkpoint

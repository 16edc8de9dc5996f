#include "train/checkpoint/tensors.h"

#include <algorithm>
#include <tuple>

#include "train/checkpoint/block_sums.h"

namespace muster::checkpoint {

namespace {

Error NoGroup(const Manifest& manifest, std::string_view group) {
  std::string known;
  for (const Group& there : manifest.index.groups)
    known += (known.empty() ? "" : ", ") + there.name;
  return {Code::kNotFound, "the checkpoint has no group '" + std::string(group) + "'",
          "it has " + known + "; 'all' stands for every one"};
}

}  // namespace

bool IsBefore(const TensorRef& a, const TensorRef& b) {
  return std::tie(a.group, a.entry->name) < std::tie(b.group, b.entry->name);
}

Result<std::vector<TensorRef>> TensorsOf(const Manifest& manifest, std::string_view group) {
  std::vector<TensorRef> tensors;
  bool known = group == kAllGroups;
  for (const Group& there : manifest.index.groups) {
    if (group != kAllGroups && there.name != group) continue;
    known = true;
    for (const IndexEntry& entry : manifest.index.entries)
      tensors.push_back({.group = there.name, .dtype = there.dtype, .entry = &entry});
  }
  if (!known) return NoGroup(manifest, group);
  std::ranges::sort(tensors, IsBefore);
  return tensors;
}

Status ForEachPiece(Checkpoint& checkpoint, const TensorRef& tensor,
                    const std::function<Status(ByteSpan)>& piece) {
  const std::uint64_t size = SizeOf(tensor.dtype);
  const std::uint64_t most = kBlockBytes / size;
  std::vector<std::byte> buffer(std::min(most, tensor.entry->length) * size);
  for (std::uint64_t at = 0; at < tensor.entry->length; at += most) {
    const std::uint64_t n = std::min(most, tensor.entry->length - at);
    const MutableByteSpan part = std::span(buffer).first(n * size);
    MUSTER_TRY(checkpoint.Read(tensor.group, tensor.entry->name, at, part));
    MUSTER_TRY(piece(part));
  }
  return Ok();
}

}  // namespace muster::checkpoint

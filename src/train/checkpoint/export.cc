#include "base/durable.h"
#include "train/checkpoint/digest.h"
#include "train/checkpoint/safetensors.h"
#include "train/checkpoint/tensors.h"

namespace muster::checkpoint {
namespace {

Result<std::string> HeaderOf(const Manifest& manifest, const std::vector<TensorRef>& tensors) {
  std::vector<SafetensorsEntry> entries;
  std::uint64_t at = 0;
  for (const TensorRef& tensor : tensors) {
    const std::uint64_t bytes = tensor.entry->length * SizeOf(tensor.dtype);
    entries.push_back({.name = tensor.entry->name,
                       .dtype = tensor.dtype,
                       .shape = tensor.entry->shape,
                       .begin = at,
                       .end = at + bytes});
    at += bytes;
  }
  return BuildSafetensors(
      entries,
      {{"format", "pt"}, {"model", manifest.model}, {"step", std::to_string(manifest.step)}});
}

Status WriteAll(Checkpoint& checkpoint, FileSystem& files, const std::vector<TensorRef>& tensors,
                const std::string& path) {
  const std::string header = MUSTER_TRY(HeaderOf(checkpoint.manifest(), tensors));
  const auto file = MUSTER_TRY(files.Create(path, {.replace = true}));
  MUSTER_TRY(file->Write(AsBytes(header)));
  for (const TensorRef& tensor : tensors)
    MUSTER_TRY(
        ForEachPiece(checkpoint, tensor, [&](ByteSpan piece) { return file->Write(piece); }));
  MUSTER_TRY(file->Sync());
  return file->Close();
}

}  // namespace

Status Export(Checkpoint& checkpoint, FileSystem& files, std::string_view group,
              const std::string& path) {
  if (path.empty() || path.ends_with('/'))
    return Error(Code::kInvalid, "'" + path + "' names no file to write",
                 "give a name like model.safetensors");
  if (group == kAllGroups)
    return Error(Code::kInvalid, "a file holds the tensors of one group, not of all",
                 "groups have tensors of the same names; write a file for each");
  const std::vector<TensorRef> tensors = MUSTER_TRY(TensorsOf(checkpoint.manifest(), group));
  if (files.Exists(path))
    return Error(Code::kAlreadyExists, path + " exists already", "choose another name");
  const std::string temporary = TemporaryBeside(path);
  Status written = WriteAll(checkpoint, files, tensors, temporary);
  if (written) written = CommitRename(files, temporary, path);
  if (!written) [[maybe_unused]]
    const Status removed = files.RemoveAll(temporary);
  return written;
}

}  // namespace muster::checkpoint

#include "train/checkpoint/open.h"

#include <algorithm>

#include "base/absent.h"
#include "base/crc32c.h"
#include "base/durable.h"
#include "base/readable_file.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/reader.h"

namespace muster::checkpoint {
namespace {

constexpr muster::Bytes kManifestLimit = 64_MiB;

Result<std::string> ReadManifestText(FileSystem& files, const std::string& path) {
  const std::string name = path + "/" + std::string(kManifestName);
  if (!files.Exists(name)) {
    if (!ParseStepName(muster::NameOf(path)))
      return Error(Code::kNotFound, path + " is not a checkpoint: it has no manifest.json",
                   "muster ckpt ls FOLDER lists checkpoints");
    return Error(Code::kDataLoss, path + " has lost its manifest.json",
                 "use an older checkpoint of the folder");
  }
  auto text = files.ReadAll(name, kManifestLimit);
  if (!text && text.error().code() == Code::kInvalid)  // too large, or no regular file
    return Error(Code::kDataLoss, text.error().message(), "use an older checkpoint of the folder");
  if (!text) return text;
  const auto sum = files.ReadAll(path + "/" + std::string(kManifestSumName), {.count = 64});
  if (!sum || *sum != SumText(Crc32c(AsBytes(*text))))
    return Error(Code::kDataLoss, name + " is damaged: it does not have its checksum",
                 "use an older checkpoint of the folder");
  return text;
}

/// A folder that was renamed by hand would be found under a step that it is not of, and what a run
/// saves after it would be older than it for ever.
Status CheckName(const std::string& path, const Manifest& manifest) {
  const auto named = ParseStepName(muster::NameOf(path));
  if (!named || *named == manifest.step) return Ok();
  return Error(Code::kDataLoss,
               path + " is named for step " + std::to_string(*named) +
                   ", but its manifest.json is of step " + std::to_string(manifest.step),
               "rename it to " + StepName(manifest.step) + ", or use another checkpoint");
}

/// Files that are missing or have another size are found at once; their content when it is read.
Status CheckFiles(const std::string& path, const Manifest& manifest) {
  for (const StoredFile& stored : manifest.files) {
    const std::string name = path + "/" + stored.name;
    const auto file = ReadableFile::Open(name);
    if (!file)
      return Error(Code::kDataLoss, file.error().message(),
                   "use an older checkpoint of the folder");
    const std::uint64_t expected = stored.header_bytes + stored.data_bytes;
    if (file->size() != expected)
      return Error(Code::kDataLoss,
                   name + " has " + std::to_string(file->size()) + " bytes instead of " +
                       std::to_string(expected),
                   "use an older checkpoint of the folder");
  }
  return Ok();
}

}  // namespace

Result<std::vector<CheckpointInfo>> ListCheckpoints(FileSystem& files, const std::string& folder) {
  std::vector<CheckpointInfo> found;
  for (const std::string& name : MUSTER_TRY(files.List(folder))) {
    if (const auto step = ParseStepName(name))
      found.push_back({.step = *step, .path = folder + "/" + name});
  }
  std::ranges::sort(found, {}, &CheckpointInfo::step);
  return found;
}

Result<std::optional<CheckpointInfo>> FindLatest(FileSystem& files, const std::string& folder) {
  if (!files.Exists(folder)) return std::optional<CheckpointInfo>();
  const auto all = MUSTER_TRY(ListCheckpoints(files, folder));
  if (all.empty()) return std::optional<CheckpointInfo>();
  return std::optional(all.back());
}

bool IsOneCheckpoint(FileSystem& files, const std::string& path) {
  return files.Exists(path + "/" + std::string(kManifestName)) ||
         ParseStepName(muster::NameOf(path));
}

Result<std::string> ResolveCheckpoint(FileSystem& files, const std::string& path) {
  if (!files.Exists(path))
    return Absent("checkpoint or folder of checkpoints", path,
                  "look at the name; muster ckpt ls FOLDER lists checkpoints");
  if (IsOneCheckpoint(files, path)) return path;
  if (const auto latest = MUSTER_TRY(FindLatest(files, path))) return latest->path;
  return Error(Code::kNotFound, AbsolutePath(path) + " holds no committed checkpoint",
               "give a step-… folder, or a folder that holds some");
}

struct Checkpoint::State {
  std::string path;
  Manifest manifest;
  Reader reader;
};

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Result<Checkpoint> Checkpoint::Open(FileSystem& files, const std::string& path) {
  const std::string text = MUSTER_TRY(ReadManifestText(files, path));
  auto state = std::make_unique<State>();
  state->path = path;
  auto manifest = ParseManifest(text);
  if (!manifest)
    return Error(manifest.error())
        .Within(path + "/manifest.json")
        .Hint("use an older checkpoint of the folder");
  state->manifest = *std::move(manifest);
  MUSTER_TRY(CheckName(path, state->manifest));
  MUSTER_TRY(CheckFiles(path, state->manifest));
  state->reader.Use(path, state->manifest);
  return Checkpoint(std::move(state));
}

const std::string& Checkpoint::path() const { return state_->path; }
const Manifest& Checkpoint::manifest() const { return state_->manifest; }

Status Checkpoint::Read(std::string_view group, std::string_view name, std::uint64_t first,
                        MutableByteSpan out) {
  return state_->reader.Read(group, name, first, out);
}

Status Checkpoint::ReadTensor(std::string_view group, std::string_view name, MutableByteSpan out) {
  const auto entry = MUSTER_TRY(state_->reader.Find(group, name));
  if (out.size() != entry.bytes)
    return Error(Code::kInvalid, "tensor '" + std::string(name) + "' has " +
                                     std::to_string(entry.bytes) + " bytes, the buffer " +
                                     std::to_string(out.size()));
  return state_->reader.Read(group, name, 0, out);
}

Result<VerifyReport> Checkpoint::Verify() { return state_->reader.Verify(); }

}  // namespace muster::checkpoint

#pragma once
// Finding and reading committed checkpoints. A checkpoint is committed when its folder has its
// final name, step-NNNNNNNNNNNN; *.tmp is never looked at. A reader may have any number of ranks:
// it asks for elements of named tensors and only the 4 MiB blocks that hold them are read, each
// checked against its CRC32C before a byte of it is handed out.
//
// Memory: the caller's spans and one block. One thread a Checkpoint.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/result.h"
#include "train/checkpoint/manifest.h"

namespace muster::checkpoint {

struct CheckpointInfo {
  std::uint64_t step = 0;
  std::string path;
};

/// Committed checkpoints, oldest first. NotFound when the folder is absent.
Result<std::vector<CheckpointInfo>> ListCheckpoints(FileSystem& files, const std::string& folder);

/// The newest committed one; nothing when there is none or the folder is absent.
Result<std::optional<CheckpointInfo>> FindLatest(FileSystem& files, const std::string& folder);

/// Whether `path` is one checkpoint, whole or damaged, by its name or what is in it.
bool IsOneCheckpoint(FileSystem& files, const std::string& path);

/// `path` itself when it is a checkpoint, the newest one when it is a folder of checkpoints.
/// NotFound with a hint otherwise.
Result<std::string> ResolveCheckpoint(FileSystem& files, const std::string& path);

struct VerifyReport {
  std::uint64_t bytes = 0;  ///< read
  std::vector<std::string>
      damage;  ///< a sentence each: file, byte range, tensors; empty: all is well
};

class Checkpoint {
 public:
  /// Reads and validates manifest.json and that every file has its size; no data yet. DataLoss when
  /// damaged (names the file), NotFound when `path` is no checkpoint, Precondition when of a newer
  /// version.
  static Result<Checkpoint> Open(FileSystem& files, const std::string& path);
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::string& path() const;
  const Manifest& manifest() const;

  /// Elements [first, first + out.size() / SizeOf(group's dtype)) of tensor `name`, counted in the
  /// tensor, into `out`. DataLoss names file, tensor and byte range of a damaged block.
  Status Read(std::string_view group, std::string_view name, std::uint64_t first,
              MutableByteSpan out);
  /// The whole tensor.
  Status ReadTensor(std::string_view group, std::string_view name, MutableByteSpan out);

  /// Reads everything once and holds every block against its CRC. An error only when reading itself
  /// is impossible.
  Result<VerifyReport> Verify();

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace muster::checkpoint

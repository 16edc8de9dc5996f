#pragma once
// Saving a checkpoint by all ranks together, so that a crash, a full disk or a stale generation at
// any instant leaves the previous one as the newest: docs/formats/checkpoint.md.
//
//   rank 0 makes step-N.gG.tmp → agree → every rank writes and fsyncs its file → agree → rank 0
//   compares the generation file, writes manifest.json, renames, fsyncs, replaces `latest`,
//   prunes → agree
//
// Every rank calls Save with the same folder, step, world and generation. An error means: not
// committed. Called from the training thread; blocks until the disk has everything.

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/result.h"
#include "train/checkpoint/manifest.h"

namespace muster::checkpoint {

/// How the ranks learn whether all of them succeeded. One call is a collective.
class Agreement {
 public:
  virtual ~Agreement() = default;
  /// True on every rank when every rank said true.
  virtual Result<bool> AllOk(bool ok) = 0;
};

/// The agreement of a single process.
class AloneAgreement final : public Agreement {
 public:
  Result<bool> AllOk(bool ok) override { return ok; }
};

/// Elements of a group from `begin` on, in the caller's memory: data.size() / SizeOf(dtype) of
/// them.
struct Slice {
  std::string group;
  std::uint64_t begin = 0;
  ByteSpan data;
};

struct SaveRequest {
  std::string folder;  ///< the checkpoints folder; made when absent (its parent must exist)
  Rank rank;
  /// step, generation, world and everything that describes the run; `files` is filled in here.
  /// Every rank gives the same index; of the rest rank 0's counts.
  Manifest manifest;
  /// This rank's part. Together the ranks must cover every tensor of every group.
  std::vector<Slice> slices;
  /// Compared with the manifest's generation right before the commit; empty: not compared.
  std::string generation_file;
  /// Older committed checkpoints beyond this number are removed after the commit; 0 keeps all.
  std::uint32_t keep_last = 0;
  /// A checkpoint of this step is there already: replace it (atomically) or fail with
  /// AlreadyExists.
  bool replace_existing = false;
};

struct SaveReport {
  std::string path;                ///< the committed folder
  std::uint64_t bytes = 0;         ///< written by this rank
  std::vector<std::string> notes;  ///< rank 0: what went wrong after the commit (`latest`, pruning)
};

Result<SaveReport> Save(FileSystem& files, Agreement& agreement, const SaveRequest& request);

/// Removes what dead generations left half-written (every *.tmp of `generation` or older). Rank 0,
/// at start, before the first Save. An absent folder is fine.
Status CleanLeftovers(FileSystem& files, const std::string& folder, Generation generation);

}  // namespace muster::checkpoint

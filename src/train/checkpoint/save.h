#pragma once
// Saving a checkpoint by all ranks together, so that a crash, a full disk or a stale generation at
// any instant leaves the previous one as the newest: docs/formats/checkpoint.md.
//
//   rank 0 makes step-N.RUN.gG.tmp → agree → every rank writes and fsyncs its file → agree → rank 0
//   compares the generation file, writes manifest.json, renames, fsyncs, replaces `latest`,
//   prunes → agree
//
// Every rank calls Save with the same folder, step, world, run and generation. On rank 0 an error
// means: not committed (but for a name that could be neither synced nor taken back, and the message
// says so). On another rank Cancelled from a rank that failed means the same; an error of the last
// agreement itself (a rank died in it) leaves open whether rank 0 had committed, and says so.
// Called from the training thread; blocks until the disk has everything.
//
// The folder belongs to one run at a time: rank 0 holds its FolderLock (lock.h).

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
  std::string folder;  ///< the checkpoints folder; made with its parents when absent
  std::string run;     ///< RunTag of the run, part of the temporary name; may be empty
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
  /// Steps whose committed checkpoint is known to be damaged: neither counted among those to keep,
  /// nor removed, nor named by `latest`.
  std::vector<std::uint64_t> damaged;
  /// A checkpoint of this step is there already: replace it (atomically) or fail with
  /// AlreadyExists.
  bool replace_existing = false;
};

struct SaveReport {
  std::string path;         ///< the committed folder
  std::uint64_t bytes = 0;  ///< written by this rank
  /// Rank 0: what went wrong after the commit (`latest`, pruning, telling the others).
  std::vector<std::string> notes;
};

Result<SaveReport> Save(FileSystem& files, Agreement& agreement, const SaveRequest& request);

/// Makes the folder of checkpoints and the folders above it, durably.
Status MakeFolder(FileSystem& files, const std::string& folder);

/// Before a folder is made that may lie in the run's: that the run's is still where it was, which
/// its generation file tells. "": there is no run.
Status CheckRunFolder(FileSystem& files, const std::string& generation_file);
/// Writes, syncs and removes something in it, so that a full disk or a folder that denies us is
/// found before the training and not after it.
Status ProbeFolder(FileSystem& files, const std::string& folder);
/// Removes what runs and generations left half-written (every *.tmp of ours). Rank 0, holding the
/// folder's lock, before the first Save. An absent folder is fine.
Status CleanLeftovers(FileSystem& files, const std::string& folder);

}  // namespace muster::checkpoint

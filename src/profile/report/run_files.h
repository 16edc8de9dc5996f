#pragma once
// Reads a run folder that may be of a live run, torn by a crash, or made by someone hostile. Paths
// are relative and every component is opened without following symbolic links; only regular files
// are read, so a FIFO cannot hang us; sizes are capped. Nothing is written. One thread.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace muster::profile {

/// What ForEachLine left out.
struct LinesRead {
  std::uint64_t lines = 0;
  std::uint64_t too_long = 0;  ///< longer than kMaxLineBytes, skipped
  bool torn = false;           ///< the last line had no newline and was skipped
  bool cut = false;            ///< the file is larger than the limit; the rest was not read
};

struct FileSight {
  std::uint64_t size = 0;
  WallTime written;
};

inline constexpr std::size_t kMaxLineBytes = 64 << 10;

class RunFiles {
 public:
  /// NotFound when `folder` is not there, Invalid when it is no folder.
  static Result<RunFiles> Open(const std::string& folder);

  /// NotFound when it is absent, Precondition when it is larger than `limit`, DataLoss
  /// when it is not a file.
  Result<std::string> ReadWhole(std::string_view path, Bytes limit) const;
  /// The last `most` bytes of a file.
  Result<std::string> ReadTail(std::string_view path, Bytes most) const;
  /// Up to `most` bytes from `offset` on; fewer at the end of the file, none behind it.
  Result<std::string> ReadAt(std::string_view path, std::uint64_t offset, Bytes most) const;
  /// How large a file is, and when it was written last.
  Result<FileSight> Look(std::string_view path) const;
  /// The names in a folder, "." and ".." aside, in no order; at most `most` of them.
  Result<std::vector<std::string>> List(std::string_view path, std::size_t most) const;
  /// Calls `use` with each whole line, without its newline.
  Result<LinesRead> ForEachLine(std::string_view path, Bytes limit,
                                const std::function<void(std::string_view)>& use) const;
  /// Whether a process holds the run's lock, which is how a live run is told from a dead one.
  bool LockHeld() const;
  /// As it was given to Open. Errors name files relative to it.
  const std::string& folder() const { return path_; }

 private:
  RunFiles(std::string path, Fd folder) : path_(std::move(path)), folder_(std::move(folder)) {}
  Result<Fd> OpenFile(std::string_view path) const;

  std::string path_;
  Fd folder_;
};

}  // namespace muster::profile

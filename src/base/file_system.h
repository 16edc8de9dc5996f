#pragma once
// The file operations that durable code needs, cut where a test stands: PosixFiles() is the
// machine, FaultFiles (fault_files.h) runs out of disk, returns EIO or "crashes" at the n-th
// operation. Paths are used as given; the last component is never followed when it is a symbolic
// link. Writes are whole or an error. Any thread, one writer a file.
//
// Durable replacement is in durable.h; nothing else should rename over a file that someone may want
// after a crash.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace muster {

class WritableFile {
 public:
  virtual ~WritableFile() = default;
  /// Appends all of `data`, or fails (Exhausted when the disk is full, DataLoss on EIO).
  virtual Status Write(ByteSpan data) = 0;
  /// fsync(2): what was written before survives a power cut once this returns.
  virtual Status Sync() = 0;
  /// Closes; a failure here may be the first word of a lost write, so it must be looked at. The
  /// destructor closes silently.
  virtual Status Close() = 0;
};

struct CreateOptions {
  bool append = false;   ///< open or create, and write behind what is there
  bool replace = false;  ///< truncate what is there; without it an existing file is AlreadyExists
  unsigned mode = 0644;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Result<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                                       const CreateOptions& options) = 0;
  /// The whole file; Invalid when it is larger than `limit`.
  virtual Result<std::string> ReadAll(const std::string& path, Bytes limit) = 0;
  virtual Status MakeDirectory(const std::string& path, unsigned mode) = 0;
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  /// Exchanges two existing paths in one step (renameat2 RENAME_EXCHANGE).
  virtual Status Exchange(const std::string& a, const std::string& b) = 0;
  virtual Status SyncDirectory(const std::string& path) = 0;
  /// Removes a file, a link, or a whole folder without following links out of it. Absent is fine.
  virtual Status RemoveAll(const std::string& path) = 0;
  /// Names in a folder, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> List(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
};

/// The machine's own files.
FileSystem& PosixFiles();

}  // namespace muster

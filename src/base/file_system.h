#pragma once
// The file operations that durable code needs, cut where a test stands: PosixFiles() is the
// machine, MemoryFiles (memory_files.h) forgets in a crash what was not synced, FaultFiles
// (fault_files.h) runs out of disk, returns EIO or stops at the n-th operation of either. Paths are
// used as given. What writes or removes never follows a symbolic link in the last component; what
// reads does. Writes are whole or an error. Any thread, one writer a file.
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
  /// How many bytes this object has put into the file: after a Write that failed, how far it came.
  virtual std::uint64_t written() const = 0;
  /// fsync(2): what was written before survives a power cut once this returns. After a failed Write
  /// or Sync both fail for good, because the kernel may have dropped the pages that it could not
  /// write; who wants to go on appending opens the file anew.
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
  /// The whole regular file; Invalid when it is larger than `limit` or something else.
  virtual Result<std::string> ReadAll(const std::string& path, Bytes limit) = 0;
  virtual Status MakeDirectory(const std::string& path, unsigned mode) = 0;
  /// Replaces `to` when it is a file, or an empty folder and `from` is one.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  /// Rename to a name that must be free: AlreadyExists otherwise, and nothing changed. One step
  /// where the file system can (renameat2 RENAME_NOREPLACE); this default looks first.
  virtual Status RenameNew(const std::string& from, const std::string& to);
  /// Exchanges two existing paths in one step (renameat2 RENAME_EXCHANGE). Precondition where the
  /// file system cannot; CommitReplace (durable.h) has a way round.
  virtual Status Exchange(const std::string& a, const std::string& b) = 0;
  virtual Status SyncDirectory(const std::string& path) = 0;
  /// Removes a file, a link, or a whole folder, however deep, without following links out of it.
  /// Absent is fine. Invalid for "/", "." and "..".
  virtual Status RemoveAll(const std::string& path) = 0;
  /// Names in a folder, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> List(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
};

/// The machine's own files.
FileSystem& PosixFiles();

}  // namespace muster

#pragma once
// A file system in memory that knows what a disk would have forgotten: every file and folder has
// the state that programs see and the state that a sync made durable. Crash() throws away what was
// not synced, in one of the ways real file systems do. For tests of durable code, together with
// FaultFiles. Any thread.
//
// No links, modes or "." and ".." in paths; "/" is the root, and relative paths start there too.

#include <map>
#include <memory>
#include <string>

#include "base/file_system.h"
#include "base/mutex.h"

namespace muster {

class MemoryFiles final : public FileSystem {
 public:
  enum class Survives {
    kNothingUnsynced,  ///< neither content nor names that were not synced
    kNames,            ///< names and renames all survive, content does not: renamed but empty files
    kNamesAndFirstHalf  ///< as kNames, and the first half of what was written since the last sync
  };

  MemoryFiles();
  ~MemoryFiles() override;

  /// What is left after a power cut now.
  void Crash(Survives survives);

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                               const CreateOptions& options) override;
  Result<std::string> ReadAll(const std::string& path, Bytes limit) override;
  Status MakeDirectory(const std::string& path, unsigned mode) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status RenameNew(const std::string& from, const std::string& to) override;
  Status Exchange(const std::string& a, const std::string& b) override;
  Status SyncDirectory(const std::string& path) override;
  Status RemoveAll(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& path) override;
  bool Exists(const std::string& path) override;

 private:
  struct Node;
  class File;
  using NodePtr = std::shared_ptr<Node>;
  using Entries = std::map<std::string, NodePtr>;

  NodePtr Find(const std::string& path) const MUSTER_REQUIRES(mutex_);
  Result<NodePtr> FolderOf(const std::string& path) const MUSTER_REQUIRES(mutex_);
  Status Move(const std::string& from, const std::string& to) MUSTER_REQUIRES(mutex_);
  static void Forget(Node& node, Survives survives);

  mutable Mutex mutex_;
  NodePtr root_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster

#pragma once
// A FileSystem in front of another that breaks at the n-th operation that changes something. A test
// counts the operations of an undisturbed run, then runs again once per index and kind of fault and
// looks at what is left:
//
//   for (std::uint64_t n = 0; n < count; ++n) {
//     FaultFiles files(inner, {.at = n, .fault = Fault::kNoSpace});
//     …
//
// Counted: Create, Write, Sync, Close, MakeDirectory, Rename, RenameNew, Exchange, SyncDirectory,
// RemoveAll. Any thread; files must not outlive it.

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "base/file_system.h"

namespace muster {

enum class Fault {
  kNoSpace,     ///< Exhausted; a Write leaves the first half of its data
  kIoError,     ///< DataLoss; a Write leaves nothing
  kCrash,       ///< the operation and all after it do nothing and fail: the process is dead
  kNoExchange,  ///< Exchange is Precondition as on file systems without it; nothing else breaks
};

struct FaultPlan {
  std::uint64_t at = std::numeric_limits<std::uint64_t>::max();  ///< the operation, 0 is the first
  Fault fault = Fault::kNoSpace;
  bool lasting = false;  ///< what follows fails too, as on a disk that stays full; removing works
};

class FaultFiles final : public FileSystem {
 public:
  FaultFiles(FileSystem& inner, const FaultPlan& plan) : inner_(inner), plan_(plan) {}

  /// Operations that changed something or tried to.
  std::uint64_t operations() const { return operations_; }

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
  class File;
  /// Counts an operation; the error when it is its turn to break.
  Status Next(const std::string& what);
  Error Broken(const std::string& what) const;

  FileSystem& inner_;
  FaultPlan plan_;
  std::atomic<std::uint64_t> operations_{0};
};

}  // namespace muster

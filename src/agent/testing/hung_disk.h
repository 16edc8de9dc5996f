#pragma once
// For tests: the machine's files, whose creation (or listing) hangs until it is let go, as on a
// dead NFS server.

#include <memory>
#include <string>

#include "agent/testing/full_disk.h"
#include "base/mutex.h"

namespace muster::agent {

class HungDisk final : public FullDisk {
 public:
  std::atomic<bool> hang_lists = false;

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                               const CreateOptions& options) override {
    Hang();
    return FullDisk::Create(path, options);
  }
  Result<std::vector<std::string>> List(const std::string& path) override {
    if (!hang_lists) return FullDisk::List(path);
    Hang();
    auto names = FullDisk::List(path);
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
    return names;
  }
  void AwaitHang() {
    MutexLock lock(mutex_);
    while (!entered_) changed_.WaitUntil(mutex_, kNever);
  }
  void LetGo() {
    MutexLock lock(mutex_);
    free_ = true;
    changed_.NotifyAll();
  }

  /// A listing was let go and uses this no more, but for a moment.
  void AwaitEnd() {
    MutexLock lock(mutex_);
    while (!ended_) changed_.WaitUntil(mutex_, kNever);
  }

 private:
  void Hang() {
    MutexLock lock(mutex_);
    entered_ = true;
    changed_.NotifyAll();
    while (!free_) changed_.WaitUntil(mutex_, kNever);
  }

  Mutex mutex_;
  CondVar changed_;
  bool entered_ MUSTER_GUARDED_BY(mutex_) = false;
  bool free_ MUSTER_GUARDED_BY(mutex_) = false;
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::agent

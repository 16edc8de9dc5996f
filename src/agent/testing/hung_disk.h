#pragma once
// For tests: the machine's files, whose creation hangs until it is let go, as on a dead NFS server.

#include <memory>
#include <string>

#include "agent/testing/full_disk.h"
#include "base/mutex.h"

namespace muster::agent {

class HungDisk final : public FullDisk {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                               const CreateOptions& options) override {
    MutexLock lock(mutex_);
    entered_ = true;
    changed_.NotifyAll();
    while (!free_) changed_.WaitUntil(mutex_, kNever);
    return FullDisk::Create(path, options);
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

 private:
  Mutex mutex_;
  CondVar changed_;
  bool entered_ MUSTER_GUARDED_BY(mutex_) = false;
  bool free_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::agent

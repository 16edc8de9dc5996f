#pragma once
// The right of one run to write into a folder of checkpoints. Rank 0 holds an flock on FOLDER/.lock
// from before its first look until it ends, however it ends; two runs in one folder would delete
// and mix each other's files. The file says who holds it, for the other one's message, and stays
// when the lock goes: its content means nothing without the lock, with one exception. A rank 0 that
// muster run started is replaced when it dies, and meanwhile nobody holds the lock: the file also
// names the process that keeps the run going (the parent of all ranks), and as long as that lives
// the folder is not free for another run.
//
// The lock belongs to the open file, so a process that is forked while it is held holds it too:
// take it after the last fork (a zygote's children do). Programs that are executed do not get it.

#include <chrono>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace muster::checkpoint {

class FolderLock {
 public:
  /// Waits up to `patience` for a holder that is just ending (a killed rank 0 of the generation
  /// before); then Conflict, naming the folder and, where known, the holder. The folder must exist.
  /// `keeper`: the process that will replace this one when it dies; 0: nobody will.
  static Result<FolderLock> Take(const std::string& folder, std::string_view run,
                                 std::chrono::milliseconds patience, int keeper = 0);

  /// False where the file system has no flock: then nothing was locked.
  bool held() const { return file_.valid(); }

 private:
  explicit FolderLock(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

}  // namespace muster::checkpoint

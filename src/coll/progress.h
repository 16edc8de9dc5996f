#pragma once
// The thread that runs all-reduces while the caller computes. Made at the first Start, so a process
// that never overlaps has no second thread (and may be forked). It runs the calls in the order of
// Start; everything else of the group waits for it to be idle, so the ranks see one order.
//
// Start, Wait, Drain and the destructor are called by the group's owner thread. After a fork the
// child must call Abandon instead of anything else: its thread does not exist.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "coll/shm_group.h"

namespace muster::coll {

class Progress {
 public:
  explicit Progress(ShmGroup& group) : group_(group) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The ticket, or 0 when 64 calls are in flight or the thread cannot be made.
  std::uint64_t Start(void* buffer, const CallSpec& spec);
  /// Blocks until the call has ended. INVALID for a ticket that was never given out.
  muster_coll_status Wait(std::uint64_t ticket, std::string& message);
  /// Blocks until nothing is in flight.
  void Drain();
  /// In a forked child: forget the thread.
  static void Abandon(std::unique_ptr<Progress> progress) {
    [[maybe_unused]] const Progress* leaked = progress.release();
  }

 private:
  static constexpr std::uint64_t kMaxInFlight = 64;
  struct Job {
    void* buffer = nullptr;
    CallSpec spec;
    std::string site;
  };

  bool MakeThread();
  void Run();
  /// The next call, or nothing when the group closes and all have ended.
  std::optional<Job> NextJob();
  void Finish(muster_coll_status status);

  ShmGroup& group_;
  Mutex mutex_;
  CondVar work_;
  CondVar done_;  ///< no deadline: every call has the group's time-out
  std::array<Job, kMaxInFlight> jobs_ MUSTER_GUARDED_BY(mutex_);  ///< ticket t is jobs_[t % 64]
  std::uint64_t started_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t ended_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t first_failed_ MUSTER_GUARDED_BY(mutex_) = 0;  ///< 0: none
  muster_coll_status failure_ MUSTER_GUARDED_BY(mutex_) = MUSTER_COLL_OK;
  std::string failure_message_ MUSTER_GUARDED_BY(mutex_);
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  // Last: the thread uses all of the above.
  std::thread thread_;
};

}  // namespace muster::coll

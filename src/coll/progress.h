#pragma once
// The thread that runs all-reduces while the caller computes. Made at the first Start, so a process
// that never overlaps has no second thread (and may be forked). It runs the calls in the order of
// Start; everything else of the group waits for it to be idle, so the ranks see one order.
//
// Start, Wait, Drain and the destructor are called by the group's owner thread. After a fork the
// child must call Abandon instead of anything else: its thread does not exist.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

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
  static void Abandon(std::unique_ptr<Progress> progress) { (void)progress.release(); }

 private:
  static constexpr std::uint64_t kMaxInFlight = 64;
  struct Job {
    void* buffer = nullptr;
    CallSpec spec;
    std::string site;
  };

  bool MakeThread();
  void Run();

  ShmGroup& group_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  // Under mutex_:
  std::array<Job, kMaxInFlight> jobs_;  ///< ticket t is jobs_[t % 64]
  std::uint64_t started_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t first_failed_ = 0;  ///< 0: none
  muster_coll_status failure_ = MUSTER_COLL_OK;
  std::string failure_message_;
  bool stopping_ = false;
  // Last: the thread uses all of the above.
  std::thread thread_;
};

}  // namespace muster::coll

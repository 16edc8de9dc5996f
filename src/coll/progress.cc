#include "coll/progress.h"

#include <pthread.h>

#include <csignal>
#include <system_error>

namespace muster::coll {

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

bool Progress::MakeThread() {
  if (thread_.joinable()) return true;
  // Signals belong to the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "muster-coll");
  return true;
}

std::uint64_t Progress::Start(void* buffer, const CallSpec& spec) {
  if (!MakeThread()) return 0;
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    if (started_ - ended_ >= kMaxInFlight) return 0;
    ticket = ++started_;
    Job& job = jobs_[ticket % kMaxInFlight];
    job.buffer = buffer;
    job.spec = spec;
    job.site = spec.site != nullptr ? spec.site : "";
  }
  work_.notify_one();
  return ticket;
}

void Progress::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stopping_ || ended_ < started_; });
    if (ended_ == started_) return;  // stopping, and nothing is left
    Job& job = jobs_[(ended_ + 1) % kMaxInFlight];
    job.spec.site = job.site.c_str();
    lock.unlock();
    const muster_coll_status status = group_.AllReduce(job.buffer, job.spec);
    lock.lock();
    ++ended_;
    if (status != MUSTER_COLL_OK && first_failed_ == 0) {
      first_failed_ = ended_;
      failure_ = status;
      failure_message_ = group_.message();
    }
    done_.notify_all();
  }
}

muster_coll_status Progress::Wait(std::uint64_t ticket, std::string& message) {
  std::unique_lock lock(mutex_);
  if (ticket == 0 || ticket > started_) {
    message = "ticket " + std::to_string(ticket) + " was never given out";
    return MUSTER_COLL_INVALID;
  }
  done_.wait(lock, [&] { return ended_ >= ticket; });
  if (first_failed_ == 0 || ticket < first_failed_) return MUSTER_COLL_OK;
  message = failure_message_;
  return failure_;
}

void Progress::Drain() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return ended_ == started_; });
}

}  // namespace muster::coll

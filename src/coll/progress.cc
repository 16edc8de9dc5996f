#include "coll/progress.h"

#include <pthread.h>

#include <csignal>
#include <system_error>

namespace muster::coll {

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  work_.NotifyOne();
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
    const MutexLock lock(mutex_);
    if (started_ - ended_ >= kMaxInFlight) return 0;
    ticket = ++started_;
    Job& job = jobs_[ticket % kMaxInFlight];
    job.buffer = buffer;
    job.spec = spec;
    job.site = spec.site != nullptr ? spec.site : "";
  }
  work_.NotifyOne();
  return ticket;
}

void Progress::Run() {
  while (std::optional<Job> job = NextJob()) {
    job->spec.site = job->site.c_str();
    Finish(group_.AllReduce(job->buffer, job->spec));
  }
}

std::optional<Progress::Job> Progress::NextJob() {
  const MutexLock lock(mutex_);
  while (!stopping_ && ended_ == started_) work_.WaitUntil(mutex_, kNever);
  if (ended_ == started_) return std::nullopt;
  return jobs_[(ended_ + 1) % kMaxInFlight];
}

void Progress::Finish(muster_coll_status status) {
  const MutexLock lock(mutex_);
  ++ended_;
  if (status != MUSTER_COLL_OK && first_failed_ == 0) {
    first_failed_ = ended_;
    failure_ = status;
    failure_message_ = group_.message();
  }
  done_.NotifyAll();
}

muster_coll_status Progress::Wait(std::uint64_t ticket, std::string& message) {
  const MutexLock lock(mutex_);
  if (ticket == 0 || ticket > started_) {
    message = "ticket " + std::to_string(ticket) + " was never given out";
    return MUSTER_COLL_INVALID;
  }
  while (ended_ < ticket) done_.WaitUntil(mutex_, kNever);
  if (first_failed_ == 0 || ticket < first_failed_) return MUSTER_COLL_OK;
  message = failure_message_;
  return failure_;
}

void Progress::Drain() {
  const MutexLock lock(mutex_);
  while (ended_ != started_) done_.WaitUntil(mutex_, kNever);
}

}  // namespace muster::coll

#include "base/worker_pool.h"

#include <fmt/format.h>
#include <pthread.h>

namespace muster {

void NameThisThread(std::string_view name) {
  ::pthread_setname_np(::pthread_self(), std::string(name.substr(0, 15)).c_str());
}

WorkerPool::WorkerPool(const WorkerPoolOptions& options) : tasks_(options.queued) {
  MUSTER_CHECK(options.threads > 0);
  for (std::size_t i = 0; i < options.threads; ++i) {
    threads_.emplace_back(
        [this, name = fmt::format("{}-{}", options.name, i)](const std::stop_token& stop) {
          NameThisThread(name);
          while (const auto task = tasks_.Pop()) (*task)(stop);
        });
  }
}

WorkerPool::~WorkerPool() {
  for (std::jthread& thread : threads_) thread.request_stop();
  tasks_.Abandon();
}

Status WorkerPool::Submit(Task task, Instant deadline) {
  return tasks_.Push(std::move(task), deadline);
}

void WorkerPool::Finish() {
  tasks_.Close();
  for (std::jthread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace muster

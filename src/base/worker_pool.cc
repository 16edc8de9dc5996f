#include "base/worker_pool.h"

namespace muster {

Result<std::unique_ptr<WorkerPool>> WorkerPool::Start(const WorkerPoolOptions& options) {
  if (options.threads == 0) return Error(Code::kInvalid, "a pool of 0 threads");
  std::unique_ptr<WorkerPool> pool(new WorkerPool(options));
  const auto work = [&tasks = pool->tasks_](std::size_t, const std::stop_token& stop) {
    while (const auto task = tasks.Pop()) (*task)(stop);
  };
  const auto stop = [&tasks = pool->tasks_] { tasks.Abandon(); };
  auto threads =
      StartCrew({.name = options.name, .threads = options.threads, .body = work, .stop = stop});
  if (!threads) return std::move(threads.error());
  pool->threads_ = *std::move(threads);
  return pool;
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

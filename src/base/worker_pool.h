#pragma once
// A fixed number of named threads that run tasks from a bounded queue. Submit waits when the queue
// is full, so a fast producer cannot fill the memory. Tasks run in the order of submission, several
// at once. Finish runs everything that was submitted; the destructor drops what has not begun, asks
// what has to stop through its stop_token, and joins. Submit from any thread; Finish from the
// owner's.

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/queue.h"
#include "base/result.h"
#include "base/thread.h"

namespace muster {

struct WorkerPoolOptions {
  std::string name = "worker";  ///< threads are "name-0", "name-1", …
  std::size_t threads = 1;
  std::size_t queued = 64;  ///< tasks that wait; Submit blocks beyond
};

class WorkerPool {
 public:
  /// A long task looks at the token now and then.
  using Task = std::function<void(const std::stop_token& stop)>;

  /// Exhausted when the system gives no thread, Invalid above kMostThreads or at 0.
  static Result<std::unique_ptr<WorkerPool>> Start(const WorkerPoolOptions& options);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  /// Deadline: the queue stayed full. Cancelled: finished or stopping.
  Status Submit(Task task, Instant deadline = kNever);
  /// Runs all that was submitted, then ends the threads.
  void Finish();

 private:
  explicit WorkerPool(const WorkerPoolOptions& options) : tasks_(options.queued) {}

  Queue<Task> tasks_;
  std::vector<std::jthread> threads_;
};

}  // namespace muster

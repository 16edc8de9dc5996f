#pragma once
// A fixed number of named threads that run tasks from a bounded queue. Submit waits when the queue
// is full, so a fast producer cannot fill the memory. Tasks run in the order of submission, several
// at once. Finish runs everything that was submitted; the destructor drops what has not begun, asks
// what has to stop through its stop_token, and joins. Submit from any thread; Finish from the
// owner's.

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/queue.h"
#include "base/result.h"

namespace muster {

/// Names the calling thread for ps, top and debuggers; the kernel keeps 15 bytes.
void NameThisThread(std::string_view name);

struct WorkerPoolOptions {
  std::string name = "worker";  ///< threads are "name-0", "name-1", …
  std::size_t threads = 1;
  std::size_t queued = 64;  ///< tasks that wait; Submit blocks beyond
};

class WorkerPool {
 public:
  /// A long task looks at the token now and then.
  using Task = std::function<void(const std::stop_token& stop)>;

  explicit WorkerPool(const WorkerPoolOptions& options);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  /// Deadline: the queue stayed full. Cancelled: finished or stopping.
  Status Submit(Task task, Instant deadline = kNever);
  /// Runs all that was submitted, then ends the threads.
  void Finish();

 private:
  Queue<Task> tasks_;
  std::vector<std::jthread> threads_;
};

}  // namespace muster

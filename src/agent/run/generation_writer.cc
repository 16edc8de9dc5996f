#include "agent/run/generation_writer.h"

#include <deque>
#include <optional>
#include <thread>

#include "agent/run/run_folder.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace muster::agent {
namespace {

struct Shared {
  Shared(FileSystem& file_system, std::string run_folder, GenerationWriter::OnWritten callback)
      : files(file_system), folder(std::move(run_folder)), on_written(std::move(callback)) {}

  void Run() {
    for (;;) {
      Generation next;
      {
        const MutexLock lock(mutex);
        while (asked.empty() && !stopping) changed.WaitUntil(mutex, kNever);
        if (stopping) break;
        next = asked.front();
        asked.pop_front();
      }
      Status written = WriteGeneration(files, folder, next);
      const MutexLock lock(mutex);
      if (!stopping) on_written(next, std::move(written));
    }
    const MutexLock lock(mutex);
    done = true;
    changed.NotifyAll();
  }

  FileSystem& files;
  const std::string folder;
  const GenerationWriter::OnWritten on_written;
  std::jthread thread;          // the owner's
  std::optional<bool> stopped;  // the owner's
  Mutex mutex;
  CondVar changed;
  std::deque<Generation> asked MUSTER_GUARDED_BY(mutex);
  bool stopping MUSTER_GUARDED_BY(mutex) = false;
  bool done MUSTER_GUARDED_BY(mutex) = false;
};

class ThreadWriter final : public GenerationWriter {
 public:
  explicit ThreadWriter(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  ~ThreadWriter() override { ThreadWriter::Stop(std::chrono::milliseconds(500)); }
  void Write(Generation generation) override;
  bool Stop(std::chrono::nanoseconds limit) override;

 private:
  std::shared_ptr<Shared> shared_;  ///< the thread's too
};

void ThreadWriter::Write(Generation generation) {
  const MutexLock lock(shared_->mutex);
  shared_->asked.push_back(generation);
  shared_->changed.NotifyAll();
}

bool ThreadWriter::Stop(std::chrono::nanoseconds limit) {
  if (shared_->stopped) return *shared_->stopped;
  bool done = false;
  {
    const MutexLock lock(shared_->mutex);
    shared_->stopping = true;
    shared_->changed.NotifyAll();
    const Instant deadline = MonotonicClock::now() + limit;
    while (!shared_->done && shared_->changed.WaitUntil(shared_->mutex, deadline)) {
    }
    done = shared_->done;
  }
  if (done) {
    shared_->thread.join();
  } else {
    shared_->thread.detach();  // allow: hangs in the kernel, join would hang too
  }
  shared_->stopped = done;
  return done;
}

}  // namespace

Result<std::unique_ptr<GenerationWriter>> GenerationWriter::Start(FileSystem& files,
                                                                  std::string folder,
                                                                  OnWritten on_written) {
  auto shared = std::make_shared<Shared>(files, std::move(folder), std::move(on_written));
  shared->thread = MUSTER_TRY(
      Within("generations", StartThread("generation", [shared](const auto&) { shared->Run(); })));
  return std::unique_ptr<GenerationWriter>(std::make_unique<ThreadWriter>(std::move(shared)));
}

}  // namespace muster::agent

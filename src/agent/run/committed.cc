#include "agent/run/committed.h"

#include <functional>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "train/checkpoint/open.h"

namespace muster::agent {
namespace {

using Steps = std::set<std::uint64_t>;

/// Committed ones. Those in `known` are left out, and of the others all but the newest whole one.
Steps Look(FileSystem& files, const std::string& folder, const std::optional<Steps>& known) {
  const auto all = checkpoint::ListCheckpoints(files, folder);
  Steps steps;
  if (!all) return steps;
  for (auto info = all->rbegin(); info != all->rend(); ++info) {
    if (!known) {
      steps.insert(info->step);
    } else if (!known->contains(info->step) && checkpoint::Checkpoint::Open(files, info->path)) {
      return {info->step};
    }
  }
  return steps;
}

struct Answer {
  Mutex mutex;
  CondVar changed;
  std::optional<Steps> steps MUSTER_GUARDED_BY(mutex);
};

/// Nothing when it took longer than `limit`; the thread is left alone then.
std::optional<Steps> Within(std::chrono::nanoseconds limit, std::function<Steps()> look) {
  const Instant deadline = MonotonicClock::now() + limit;
  const auto answer = std::make_shared<Answer>();
  auto thread = StartThread("checkpoints", [answer, look](const auto&) {
    Steps steps = look();
    const MutexLock lock(answer->mutex);
    answer->steps = std::move(steps);
    answer->changed.NotifyAll();
  });
  if (!thread) return look();
  std::optional<Steps> steps;
  {
    const MutexLock lock(answer->mutex);
    while (!answer->steps && answer->changed.WaitUntil(answer->mutex, deadline)) {
    }
    steps = answer->steps;
  }
  if (steps) {
    thread->join();
  } else {
    thread->detach();  // allow: hangs in the kernel, join would hang too
  }
  return steps;
}

}  // namespace

CommittedSteps::CommittedSteps(FileSystem& files, std::string folder,
                               std::chrono::nanoseconds limit)
    : files_(files), folder_(std::move(folder)) {
  if (folder_.empty()) return;
  before_ = Within(limit, [&files, name = folder_] { return Look(files, name, std::nullopt); });
  hangs_ = !before_;
}

std::optional<std::uint64_t> CommittedSteps::Newest(std::chrono::nanoseconds limit) {
  if (folder_.empty() || !before_) return std::nullopt;
  const auto found = Within(limit, [&files = files_, name = folder_, known = before_] {
    return Look(files, name, known);
  });
  hangs_ = hangs_ || !found;
  if (!found || found->empty()) return std::nullopt;
  return *found->rbegin();
}

}  // namespace muster::agent

#include "agent/logs/log_marks.h"

#include <chrono>
#include <utility>

namespace muster::agent {

void LogMarks::Add(Instant at, std::uint64_t offset) {
  const profile::LogMark mark{.t_ns = at.time_since_epoch().count(), .offset = offset};
  // Below the last one when the log did not get all that was announced: marks only go up.
  const bool due =
      !any_ || offset >= last_.offset + profile::kLogMarkBytes ||
      (offset >= last_.offset &&
       mark.t_ns - last_.t_ns >= std::chrono::nanoseconds(profile::kLogMarkTime).count());
  if (!due) return;
  any_ = true;
  last_ = mark;
  const auto record = profile::EncodeLogMark(mark);
  due_.append(record.data(), record.size());
}

void LogMarks::Write() {
  if (due_.empty()) return;
  const std::string bytes = torn_ + std::exchange(due_, {});
  const std::size_t kept = file_.Append(bytes);
  if (kept < torn_.size()) {
    torn_.erase(0, kept);
    return;
  }
  const std::size_t of_next = (kept - torn_.size()) % profile::kLogRecordBytes;
  torn_ = of_next == 0 ? "" : bytes.substr(kept, profile::kLogRecordBytes - of_next);
}

}  // namespace muster::agent

#include "agent/logs/log_marks.h"

#include <chrono>

namespace muster::agent {

void LogMarks::Add(Instant at, std::uint64_t offset) {
  const profile::LogMark mark{.t_ns = at.time_since_epoch().count(), .offset = offset};
  const bool due =
      !any_ || offset - last_.offset >= profile::kLogMarkBytes ||
      mark.t_ns - last_.t_ns >= std::chrono::nanoseconds(profile::kLogMarkTime).count();
  if (!due) return;
  any_ = true;
  last_ = mark;
  if (!torn_.empty()) torn_.erase(0, file_.Append(torn_));
  if (!torn_.empty()) return;
  const auto record = profile::EncodeLogMark(mark);
  const std::string_view bytes(record.data(), record.size());
  const std::size_t kept = file_.Append(bytes);
  if (kept > 0) torn_ = bytes.substr(kept);
}

}  // namespace muster::agent

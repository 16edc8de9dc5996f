#include "agent/logs/log_file.h"

#include <fmt/format.h>

#include <utility>

namespace muster::agent {

std::size_t LogFile::Put(std::string_view bytes) {
  const std::size_t kept = file_.Append(bytes);
  size_ += kept;
  return kept;
}

/// True when no marker is due any more. One that the disk had room for half of is completed later,
/// and what was lost since then gets its own.
bool LogFile::Mark() {
  while (!marker_.empty() || unmarked_ > 0) {
    if (marker_.empty()) {
      marker_ = fmt::format("\n[muster: {} bytes are missing here]\n", unmarked_);
      const std::size_t kept = Put(marker_);
      // Not begun: it can still grow.
      if (kept == 0) {
        marker_.clear();
        return false;
      }
      unmarked_ = 0;
      marker_.erase(0, kept);
    } else {
      marker_.erase(0, Put(marker_));
    }
    if (!marker_.empty()) return false;
  }
  return true;
}

std::uint64_t LogFile::Append(std::uint64_t missing, std::string_view bytes) {
  unmarked_ += missing;
  const std::size_t kept = Mark() ? Put(bytes) : 0;
  unmarked_ += bytes.size() - kept;
  return missing + bytes.size() - kept;
}

}  // namespace muster::agent

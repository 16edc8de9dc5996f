#pragma once
// Append-only lines (events, steps) on a disk that may fill up: a line that cannot be written waits
// in a bounded backlog and is tried again with the next one, so a run outlives a full disk and its
// record goes on once there is room. Single owner thread.

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/file_system.h"

namespace muster::agent {

class AppendFile {
 public:
  AppendFile(FileSystem& files, std::string path, Bytes max_backlog = 4_MiB)
      : files_(files), path_(std::move(path)), max_backlog_(max_backlog) {}

  /// `lines` ends with a newline.
  void Append(std::string_view lines);
  /// Tries the backlog again. True when nothing waits.
  bool Flush();
  std::uint64_t lost_bytes() const { return lost_; }

 private:
  FileSystem& files_;
  const std::string path_;
  const Bytes max_backlog_;
  std::unique_ptr<WritableFile> file_;
  std::string backlog_;
  std::uint64_t lost_ = 0;
  bool torn_ = false;  ///< the last write failed and may have left half a line
};

}  // namespace muster::agent

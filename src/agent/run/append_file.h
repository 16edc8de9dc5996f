#pragma once
// Append-only lines (events, steps) on a disk that may fill up: what cannot be written waits in a
// bounded backlog and is tried again with the next line, so a run outlives a full disk and its
// record goes on once there is room, in whole lines and none twice. What the backlog had no room
// for is counted. Single owner thread.

#include <cstdint>
#include <string>

#include "agent/run/reopening_file.h"
#include "base/bytes.h"

namespace muster::agent {

class AppendFile {
 public:
  AppendFile(FileSystem& files, std::string path, Bytes max_backlog = 4_MiB)
      : path_(path), file_(files, std::move(path), 0644, false), max_backlog_(max_backlog) {}

  /// `lines` ends with a newline.
  void Append(std::string_view lines);
  /// Another process of ours wrote to it and died: ends a line that it did not.
  void GoOn();
  /// Tries the backlog again. True when nothing waits.
  bool Flush();
  /// Bytes of lines for which the backlog had no room.
  std::uint64_t lost_bytes() const { return lost_; }
  /// Bytes that are not in the file yet.
  std::uint64_t waiting_bytes() const { return backlog_.size(); }

 private:
  std::string path_;
  ReopeningFile file_;
  Bytes max_backlog_;
  std::string backlog_;  ///< may begin inside a line, whose front is in the file
  std::uint64_t lost_ = 0;
};

}  // namespace muster::agent

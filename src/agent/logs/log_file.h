#pragma once
// One log file: a worker's bytes as written, and a marker where some are missing. A disk that has
// room again is used again. The writer thread's alone.

#include <cstdint>
#include <string>

#include "agent/run/reopening_file.h"

namespace muster::agent {

class LogFile {
 public:
  /// `size`: of the file as another process of ours left it.
  LogFile(FileSystem& files, std::string path, std::uint64_t size = 0)
      : file_(files, std::move(path), 0600, true), size_(size) {}

  /// Appends `bytes`, with a marker in front when `missing` bytes or earlier ones could not be
  /// kept. Returns how many bytes were lost by this call, `missing` included. An empty call makes
  /// the file.
  std::uint64_t Append(std::uint64_t missing, std::string_view bytes);
  /// What was lost last found no room on the disk.
  bool no_room() const { return file_.no_room(); }
  /// Bytes in the file, markers included.
  std::uint64_t size() const { return size_; }

 private:
  bool Mark();
  std::size_t Put(std::string_view bytes);

  ReopeningFile file_;
  std::uint64_t size_ = 0;
  std::string marker_;          ///< begun and not complete
  std::uint64_t unmarked_ = 0;  ///< lost, and no marker stands for it yet
};

}  // namespace muster::agent

#pragma once
// One log file: a worker's bytes as written, and a marker where some are missing. Opened when it is
// needed and again after an error, so that a disk that has room again is used again. The writer
// thread's alone.

#include <cstdint>
#include <memory>
#include <string>

#include "base/file_system.h"

namespace muster::agent {

class LogFile {
 public:
  LogFile(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  /// Appends `bytes`, with a marker in front when `missing` bytes or earlier ones could not be
  /// kept. Returns how many bytes were lost by this call, `missing` included.
  std::uint64_t Append(std::uint64_t missing, std::string_view bytes);

 private:
  bool WriteAll(std::string_view bytes);

  FileSystem& files_;
  std::string path_;
  std::unique_ptr<WritableFile> file_;
  std::uint64_t unmarked_ = 0;  ///< lost, and no marker stands for it yet
};

}  // namespace muster::agent

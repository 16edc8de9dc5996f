#pragma once
// A file that is appended to for as long as a run lives, on a disk that may fill up in between. A
// write that failed spoils a WritableFile for good (base/file_system.h), so it is closed then and
// opened anew by the next append, when the disk may have room again. Single owner thread.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_system.h"

namespace muster::agent {

class ReopeningFile {
 public:
  /// With `makes_folder` that of `path` is made when it is missing, with mode 0700; the one above
  /// it never: a run folder that was moved or removed must not come back.
  ReopeningFile(FileSystem& files, std::string path, unsigned mode, bool makes_folder)
      : files_(&files), path_(std::move(path)), mode_(mode), makes_folder_(makes_folder) {}

  /// How many of `bytes` are in the file now: fewer than all of them when a write failed. An empty
  /// `bytes` makes the file.
  std::size_t Append(std::string_view bytes);
  /// The last append that failed found no room on the disk.
  bool no_room() const { return no_room_; }

 private:
  bool Open();
  bool Failed(const Error& error);

  FileSystem* files_;
  std::string path_;
  unsigned mode_;
  bool makes_folder_;
  bool no_room_ = false;
  std::unique_ptr<WritableFile> file_;
};

}  // namespace muster::agent

#pragma once
// Reading at any offset of a regular file, for formats whose readers fetch ranges. One thread a
// file; the size is that of the moment of opening, and a file that shrank since is DataLoss.

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace muster {

class ReadableFile {
 public:
  /// NotFound when absent, Invalid when it is no regular file (a FIFO does not block us).
  static Result<ReadableFile> Open(const std::string& path);

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  /// Fills `out` from `offset` on, or fails: DataLoss when the file ends before that.
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const;

 private:
  ReadableFile(Fd fd, std::string path, std::uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  Fd fd_;
  std::string path_;
  std::uint64_t size_ = 0;
};

}  // namespace muster

#pragma once
// A whole file mapped read-only. Owner; the bytes live as long as it does. A file that becomes
// shorter, or whose disk fails, while it is mapped does not end the process: zeros stand in its
// place (os/map_guard.h) and Whole says so. So whoever reads from bytes() asks Whole after each
// piece of work and before anything of it is used:
//
//   const Status read = Work(file.bytes());
//   MUSTER_TRY(file.Whole());  // over any error of the work: zeros look like damage
//   return read;
//
// Reading while the file changes may see any bytes: sizes and offsets that were checked are not to
// be read again from the map without a check. Immutable; any thread.

#include <sys/types.h>

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "os/map_guard.h"

namespace muster::data {

class MappedFile {
 public:
  /// Denied, or DataLoss when it is gone or no regular file.
  static Result<MappedFile> Open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  ByteSpan bytes() const { return bytes_; }
  /// Ok while all that was read of bytes() so far was in the file. DataLoss once it was not, for
  /// ever, with what became of the file. Two loads, no system call.
  Status Whole() const;

 private:
  Error WhatBecameOfIt() const;

  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  ByteSpan bytes_;
  os::MapGuard guard_;
  /// The last byte that is not 0, at most kTail before the end: it is gone once the file was cut
  /// anywhere before it, within its last page too, where no signal tells. Whoever cuts the zeros
  /// behind it takes nothing away: the rest of the page reads as the zeros that stood there.
  const volatile std::byte* mark_ = nullptr;
  std::byte marked_{};
};

}  // namespace muster::data

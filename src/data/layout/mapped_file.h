#pragma once
// A whole file mapped read-only. Owner; the bytes live as long as it does. Another process that
// truncates the file makes a later read raise SIGBUS, so what must survive that uses read(2).

#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace muster::data {

class MappedFile {
 public:
  /// NotFound, Denied, or DataLoss when it is no regular file.
  static Result<MappedFile> Open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  ByteSpan bytes() const { return bytes_; }

 private:
  ByteSpan bytes_;
};

}  // namespace muster::data

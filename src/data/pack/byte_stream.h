#pragma once
// Bytes of a file in order, inflated when it is gzip (by magic, not by name). Never holds more than
// a block; a reader that knows how much it wants is not led astray by a bomb. One owner.

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace muster::data {

class ByteStream {
 public:
  static Result<std::unique_ptr<ByteStream>> Open(const std::string& path);
  virtual ~ByteStream() = default;
  /// Fills all of `out`, or as much as there is; the count that was read.
  virtual Result<std::size_t> Read(MutableByteSpan out) = 0;
};

}  // namespace muster::data

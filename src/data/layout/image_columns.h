#pragma once
// Which columns of a batch make up an image row, and the checksum that covers all of a batch but
// the images' own bytes. Shared by the packer's tests, Dataset and verify. Pure; any thread.

#include <cstdint>

#include "base/result.h"
#include "data/arrow/array.h"
#include "data/arrow/decode.h"
#include "data/layout/hf_json.h"

namespace muster::data {

/// Indices into the schema's fields and the image struct's children; −1: the set has none.
struct ImageColumns {
  int image = -1;
  int bytes = -1;
  int path = -1;
  int label = -1;
  int source = -1;

  /// Invalid when the set has no column of encoded images.
  static Result<ImageColumns> Find(const arrow::Schema& schema, const Features& features);

  const arrow::ArrayView& Images(const arrow::BatchView& batch) const {
    return batch.columns[static_cast<std::size_t>(image)].children[static_cast<std::size_t>(bytes)];
  }
};

/// CRC32C of the message at `frame` without the bytes of `main`'s value buffer.
std::uint32_t FrameCrc(ByteSpan file, const arrow::BatchFrame& frame, const arrow::ArrayView& main);

}  // namespace muster::data

#pragma once
// The rows of one record batch while they are collected: image bytes, path, label and source as
// Arrow columns, and the CRC32C of each image. A reader appends straight into the value buffer, so
// an image's bytes are copied once, by read(2). One thread at a time; reused from batch to batch.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "data/arrow/encode.h"
#include "data/arrow/type.h"
#include "data/decode/image.h"
#include "data/layout/row_index.h"

namespace muster::data {

inline constexpr std::uint32_t kBatchRows = 100;
inline constexpr std::size_t kBatchBytes = 64u << 20;

/// image: struct<bytes, path>, label, source, with HF's features in the metadata.
arrow::Schema PackedSchema(const std::vector<std::string>& label_names);

class RowColumns {
 public:
  RowColumns() { Clear(); }
  void Clear();

  /// Room for an image of `size` bytes behind the last; written by the caller, then Add or Drop.
  MutableByteSpan Reserve(std::size_t size);
  /// Makes the first `size` reserved bytes a row.
  struct Row {
    std::string_view path;
    std::int64_t label = -1;
    std::string_view source;
    ImageShape shape;  ///< not written, for Census
  };
  void Add(std::size_t size, const Row& row);
  /// Forgets the reserved bytes: the row was bad.
  void Drop() { image_used_ = static_cast<std::size_t>(image_offsets_.back()); }

  std::uint32_t rows() const { return static_cast<std::uint32_t>(labels_.size()); }
  const ImageShape& ShapeOf(std::uint32_t row) const { return shapes_[row]; }
  std::string_view SourceOf(std::uint32_t row) const;
  std::size_t image_bytes() const { return static_cast<std::size_t>(image_offsets_.back()); }
  bool Full() const { return rows() >= kBatchRows || image_bytes() >= kBatchBytes; }

  /// The body's bytes around the image values: [before][images][after], and where each row is.
  struct Body {
    arrow::BatchLayout layout;
    std::vector<std::byte> before;
    ByteSpan images;
    std::vector<std::byte> after;
    std::vector<std::byte> index;  ///< the batch's row index entries
  };
  Body Finish() const;

 private:
  std::vector<std::byte> image_data_;  ///< larger than image_used_: grown, never shrunk
  std::size_t image_used_ = 0;
  std::vector<std::int32_t> image_offsets_;
  std::vector<std::uint32_t> image_crcs_;
  std::vector<std::byte> path_data_;
  std::vector<std::int32_t> path_offsets_;
  std::vector<std::int64_t> labels_;
  std::vector<std::byte> source_data_;
  std::vector<std::int32_t> source_offsets_;
  std::vector<ImageShape> shapes_;
};

}  // namespace muster::data

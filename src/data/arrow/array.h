#pragma once
// Arrow arrays as views into a record batch's body. A view is only made (decode.h) after every
// buffer lies inside the body and every offset is in order and inside its data, so the accessors
// here need no checks but the index; and that of offsets, which are read from the map again: those
// of a file that was cut or written to meanwhile give an empty value. Valid while the body is.

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "data/arrow/type.h"

namespace muster::data::arrow {

struct ArrayView {
  const Field* field = nullptr;  ///< into the Schema that the batch was read with
  std::int64_t length = 0;
  std::int64_t null_count = 0;
  ByteSpan validity;                ///< a bit a row, low bit first; empty: nothing is null
  ByteSpan offsets;                 ///< length + 1 of 4 or 8 bytes; variable-size types
  ByteSpan data;                    ///< values; bits for kBool
  std::vector<ArrayView> children;  ///< struct fields, list items

  bool IsNull(std::int64_t row) const;
  /// Value of a binary, utf8 or fixed-size binary row (empty when null).
  ByteSpan Bytes(std::int64_t row) const;
  /// Value of an int or bool row; unsigned 64-bit values wrap.
  std::int64_t Integer(std::int64_t row) const;
  /// Value of a 32- or 64-bit float row.
  double Number(std::int64_t row) const;
  /// Rows [first, last) of children[0] that make up a list row.
  std::pair<std::int64_t, std::int64_t> Items(std::int64_t row) const;
  /// The i-th of `offsets`.
  std::int64_t Offset(std::int64_t i) const;

 private:
  /// The two offsets of a row; both `most` when they are not in order or behind it.
  std::pair<std::int64_t, std::int64_t> Between(std::int64_t row, std::int64_t most) const;
};

struct BatchView {
  std::int64_t rows = 0;
  std::vector<ArrayView> columns;
};

}  // namespace muster::data::arrow

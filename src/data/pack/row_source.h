#pragma once
// What a packer reads from: the rows of one split, in a fixed order, in chunks that workers claim
// one after the other. What a chunk holds does not depend on who claims it.
//
// Claim and NewReader from any thread; a RowReader has one owner.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/pack/row_columns.h"

namespace muster::data {

/// Up to kBatchRows neighbouring rows; `raw` is the source's own (pixels, for idx).
struct Chunk {
  std::uint64_t number = 0;
  std::uint64_t first = 0;
  std::uint32_t rows = 0;
  std::vector<std::byte> raw;
};

class RowReader {
 public:
  virtual ~RowReader() = default;
  /// Appends row `index` < chunk.rows to `columns`. On an error nothing was appended.
  virtual Status Read(const Chunk& chunk, std::uint32_t index, RowColumns& columns) = 0;
  /// What the row is called in messages and reports: "train/cat/7.png".
  virtual std::string NameOf(const Chunk& chunk, std::uint32_t index) const = 0;
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual const std::string& split() const = 0;
  virtual std::uint64_t rows() const = 0;
  /// Fills the next chunk; false at the end. An error here ends the pack: the input itself is bad.
  virtual Result<bool> Claim(Chunk& chunk) = 0;
  virtual std::unique_ptr<RowReader> NewReader() const = 0;
};

/// An opened input: its splits and what they share.
struct PackInput {
  std::vector<std::unique_ptr<RowSource>> splits;
  std::vector<std::string> label_names;
  std::string path;                ///< where it was found
  std::vector<std::string> notes;  ///< what the user should know: ignored files, guessed names
};

}  // namespace muster::data

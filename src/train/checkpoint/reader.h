#pragma once
// Turns elements of tensors into byte ranges of files and reads those, block by checked block.
// Holds one open file and one block. Used by Checkpoint only, from one thread.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/readable_file.h"
#include "base/result.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/open.h"

namespace muster::checkpoint {

class Reader {
 public:
  struct Found {
    std::uint64_t offset = 0;  ///< first element in the flat space
    std::uint64_t size = 0;    ///< bytes of an element
    std::uint64_t bytes = 0;   ///< of the tensor
  };

  /// `manifest` must stay where it is as long as the reader.
  void Use(const std::string& path, const Manifest& manifest);
  /// NotFound when the checkpoint has no such group or tensor.
  Result<Found> Find(std::string_view group, std::string_view name) const;
  Status Read(std::string_view group, std::string_view name, std::uint64_t first,
              MutableByteSpan out);
  Result<VerifyReport> Verify();

 private:
  struct Piece {
    std::uint64_t begin = 0;  ///< elements of the flat space
    std::uint64_t end = 0;
    std::size_t file = 0;
    std::uint64_t data_offset = 0;
  };

  Status ReadData(std::size_t file, std::uint64_t offset, MutableByteSpan out);
  Status LoadBlock(std::size_t file, std::uint64_t block, MutableByteSpan into);
  Status OpenFile(std::size_t file);
  void VerifyFile(std::size_t file, VerifyReport& report);
  std::string DamagedBlock(std::size_t file, std::uint64_t block, std::uint32_t sum) const;
  std::string TensorsIn(std::size_t file, std::uint64_t begin, std::uint64_t end) const;

  std::string path_;
  const Manifest* manifest_ = nullptr;
  std::map<std::string, const IndexEntry*, std::less<>> tensors_;
  std::map<std::string, std::vector<Piece>, std::less<>> pieces_;  ///< by group, in order of begin
  std::vector<bool> header_seen_;  ///< by file: held against the manifest
  std::optional<ReadableFile> open_;
  std::size_t open_index_ = 0;
  std::vector<std::byte> block_;
  std::optional<std::pair<std::size_t, std::uint64_t>> block_is_;
};

}  // namespace muster::checkpoint

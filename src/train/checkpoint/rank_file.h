#pragma once
// One rank's file of a checkpoint: a safetensors file whose tensors are slices, named GROUP@BEGIN,
// one-dimensional. Its metadata carries the CRC32C of the data's blocks, so rank 0 can describe
// every file in the manifest by reading headers only.

#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/readable_file.h"
#include "base/result.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/save.h"

namespace muster::checkpoint {

/// Writes and fsyncs; returns the bytes. Invalid when a slice does not fit the index.
Result<std::uint64_t> WriteRankFile(FileSystem& files, const std::string& path,
                                    const FlatIndex& index, const std::vector<Slice>& slices);

/// What the manifest says about the file, from its header.
Result<StoredFile> DescribeRankFile(const std::string& path, const FlatIndex& index);

/// DataLoss unless the header has its checksum and says what `stored` says: which slice is where.
/// With the checksums of the data this ties every byte that a tensor is read from to its name
/// twice.
Status CheckRankFile(const ReadableFile& file, const StoredFile& stored, const FlatIndex& index);

}  // namespace muster::checkpoint

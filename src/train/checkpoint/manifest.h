#pragma once
// What a checkpoint says about itself: manifest.json of docs/formats/checkpoint.md, version 1.
//
// A model is a *flat space*: its tensors lie one behind the other (padding between them allowed) in
// one logical array of `length` elements. Each *group* (param, exp_avg, exp_avg_sq, …) is such an
// array of its own dtype. Ranks store slices of groups; the index says where a tensor is. So a
// reader needs names only, and neither the writer's number of ranks nor its padding matters.
//
// Values, any thread. ParseManifest takes hostile input: sizes, depth and counts are limited, every
// range is checked against its file and against the flat space before anything is allocated for it.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/strong_id.h"
#include "train/checkpoint/dtype.h"

namespace muster::checkpoint {

struct IndexEntry {
  std::string name;
  std::vector<std::uint64_t> shape;  ///< empty: a scalar
  std::uint64_t offset = 0;          ///< first element in the flat space
  std::uint64_t length = 0;          ///< elements; the product of the shape
  bool operator==(const IndexEntry&) const = default;
};

struct Group {
  std::string name;  ///< "param" must be among them
  DType dtype = DType::kF32;
  bool operator==(const Group&) const = default;
};
inline constexpr std::string_view kParamGroup = "param";

struct FlatIndex {
  std::uint64_t length = 0;         ///< elements of the flat space, padding included
  std::vector<IndexEntry> entries;  ///< names unique, ranges inside the space and disjoint
  std::vector<Group> groups;
  bool operator==(const FlatIndex&) const = default;
};

/// Elements [begin, begin + length) of a group, stored at `data_offset` bytes of a file's data
/// part.
struct StoredSlice {
  std::string group;
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  std::uint64_t data_offset = 0;
  bool operator==(const StoredSlice&) const = default;
};

struct StoredFile {
  std::string name;                   ///< "rank-00000-of-00002.safetensors"
  std::uint64_t header_bytes = 0;     ///< the 8-byte length and the JSON; the data part follows
  std::uint64_t data_bytes = 0;       ///< the file ends behind them
  std::uint32_t header_crc32c = 0;    ///< of the first header_bytes
  std::vector<std::uint32_t> crc32c;  ///< of each 4 MiB of the data part, the last one shorter
  std::vector<StoredSlice> slices;
  bool operator==(const StoredFile&) const = default;
};

/// What decides whether a continuation has the same bits.
struct Canonical {
  bool enabled = false;
  std::uint32_t virtual_shards = 0;  ///< V
  bool operator==(const Canonical&) const = default;
};

struct Manifest {
  std::uint64_t step = 0;          ///< optimizer steps done; names the folder
  Generation generation{1};        ///< of the writer
  std::uint32_t world = 1;         ///< ranks of the writer; for display
  std::string model;               ///< "vit"; another one is refused at load
  std::string config_json = "{}";  ///< the model's configuration, a JSON object as text
  FlatIndex index;
  std::string loader_state;          ///< position of the data loader, opaque (≤ 64 KiB)
  std::uint64_t random_key = 0;      ///< key of the counter-based random numbers
  std::uint64_t optimizer_step = 0;  ///< bias correction's t
  Canonical canonical;
  /// "torch", "cpu_capability", "mkl_cbwr", …: continuing on others may change bits.
  std::map<std::string, std::string> environment;
  std::string created_utc;        ///< FormatUtc
  std::vector<StoredFile> files;  ///< filled by Save
};

/// DataLoss when malformed, Precondition when of a newer version; the message names the field.
Result<Manifest> ParseManifest(std::string_view json);
/// Invalid when a text is not UTF-8 or `config_json` is no object.
Result<std::string> WriteManifest(const Manifest& manifest);

/// Precondition, naming a tensor, unless the slices of all files together hold every element of
/// every tensor of every group exactly once.
Status RequireComplete(const Manifest& manifest);

/// Invalid when entries overlap, repeat, leave the space, or a length is not its shape's product.
Status Validate(const FlatIndex& index);

/// Fails with Precondition, naming the first difference, unless the checkpoint is of `model` and
/// has a tensor of the same shape for each of `expected`, and no other. Offsets and padding may
/// differ; groups that `expected` does not have are ignored.
Status RequireSame(const Manifest& manifest, std::string_view model, const FlatIndex& expected);

/// Fails with Precondition, naming the first key that differs and both values, unless the
/// checkpoint's configuration is equal to `config_json` as a JSON object.
Status RequireSameConfig(const Manifest& manifest, std::string_view config_json);

}  // namespace muster::checkpoint

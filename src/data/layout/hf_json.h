#pragma once
// The JSON of an HF `save_to_disk` folder, as text in and out: features in the Arrow schema's
// metadata, dataset_info.json, state.json, dataset_dict.json. What we write is what datasets 2.14
// to 5.x read (their oldest spelling); what we read is any of theirs. Pure; texts from outside are
// DataLoss when malformed and Precondition when they are of a kind that we do not read, never an
// exception.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::data {

struct Manifest;

/// The columns of a set that Muster itself uses, by name; empty when the set has none.
struct Features {
  std::string image;  ///< struct<bytes, path>
  std::string label;  ///< ClassLabel or an integer column called "label"
  std::vector<std::string> label_names;
  std::vector<std::string> others;  ///< of another kind: no images, whatever they are made of
  /// Whether the same rows come of both.
  bool operator==(const Features& other) const {
    return image == other.image && label == other.label && label_names == other.label_names;
  }
};

/// The value of the schema metadata key "huggingface" for our three columns image, label, source.
std::string SchemaMetadataJson(const std::vector<std::string>& label_names);
std::string DatasetInfoJson(const std::vector<std::string>& label_names);
std::string StateJson(const std::vector<std::string>& files, std::string_view fingerprint,
                      std::string_view split);
/// What a pack writes as _fingerprint.
std::string FingerprintOf(const Manifest& manifest);
/// Of the split that the manifest is of.
std::string StateJson(const Manifest& manifest, std::string_view split);
std::string DatasetDictJson(const std::vector<std::string>& splits);

/// From the schema metadata's JSON: {"info": {"features": …}}.
Result<Features> ParseSchemaMetadata(std::string_view text);
/// From dataset_info.json: {"features": …}.
Result<Features> ParseDatasetInfo(std::string_view text);

struct State {
  std::vector<std::string> files;  ///< plain names, in the order of their rows
  std::string split;               ///< empty when it says none
  std::string fingerprint;         ///< of a pack of ours the beginning of the set's id
};
Result<State> ParseState(std::string_view text);
/// May be empty: HF saves a DatasetDict without splits too.
Result<std::vector<std::string>> ParseDatasetDict(std::string_view text);

}  // namespace muster::data

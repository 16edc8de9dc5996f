#pragma once
// From the path of a dataset to its splits: a DatasetDict's, or the one that the folder is. Errors
// are for whoever typed the path: where it was looked for, what is there instead, what to do next.
// Pure but for the disk; any thread.

#include <string>
#include <vector>

#include "base/result.h"
#include "data/layout/hf_json.h"

namespace muster::data {

/// What is wrong with a set, and the file that says so.
struct SetFinding {
  std::string file;
  Error error;
};

struct SplitPlace {
  std::string name;                  ///< "train"; empty when nothing says
  std::string folder;                ///< where state.json is
  std::vector<SetFinding> findings;  ///< with kKeep: of how the set names its splits
};

enum class OnDamage {
  kRefuse,  ///< an error
  kKeep,    ///< for who looks at all of a set: remembered, and gone on with what is left
};

/// The splits of a DatasetDict, which may have none, or the one split that the folder is. NotFound
/// when there is no dataset, Precondition when it is unfinished, DataLoss when its JSON is damaged;
/// with kKeep a split whose state.json is damaged is found all the same, and so is one of ours that
/// the DatasetDict does not list.
Result<std::vector<SplitPlace>> FindSplits(const std::string& path,
                                           OnDamage damage = OnDamage::kRefuse);

/// Those of that name, with the findings of all, as they are the set's; all when it is empty.
/// NotFound, naming those that there are.
Result<std::vector<SplitPlace>> SplitsNamed(const std::string& path, const std::string& wanted,
                                            std::vector<SplitPlace> places);

/// What a split's state.json says, with at least one file. A folder without one is NotFound, or
/// Precondition when a pack was building there.
Result<State> ReadState(const std::string& folder);

/// A small text of the set. Its name was not typed, so whatever else stands there is damage.
Result<std::string> ReadSetFile(const std::string& path);

/// Whether a file or link has this name; who may not look does not learn that it is absent.
Result<bool> IsThere(const std::string& path);

}  // namespace muster::data

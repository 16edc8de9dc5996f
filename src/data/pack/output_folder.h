#pragma once
// A folder that appears whole or not at all. It is built under a hidden name beside its place
// (".NAME.muster-part"), and Commit renames it, or exchanges it with what was there in one step.
// Until then the old folder is untouched; a destroyed OutputFolder removes what was built, and what
// a killed process left is removed by the next one, when it looks like the work of a pack. A flock
// on the hidden folder keeps two processes apart. One thread.

#include <memory>
#include <string>

#include "base/durable.h"
#include "base/fd.h"
#include "base/file_system.h"
#include "base/result.h"

namespace muster::data {

class OutputFolder {
 public:
  struct Options {
    bool replace = false;  ///< an existing dataset at the place is exchanged at the end
    bool durable = true;
  };
  /// AlreadyExists, Precondition (replacing something that is no dataset), Conflict (another pack).
  static Result<std::unique_ptr<OutputFolder>> Begin(FileSystem& files, const std::string& place,
                                                     const Options& options);
  ~OutputFolder();

  /// Where to build.
  const std::string& path() const { return building_; }
  /// What the user should know of the old dataset when it could not be removed; else empty. An
  /// error leaves the place as it was.
  Result<std::string> Commit();

 private:
  OutputFolder(FileSystem& files, std::string place, const Options& options);
  Status CheckPlace() const;
  Status ClearLeftover();
  Result<Replaced> Swap();

  FileSystem& files_;
  std::string place_;
  std::string building_;
  Options options_;
  Fd lock_;
  Fd old_lock_;         ///< of what stands at the place while it is exchanged
  bool owned_ = false;  ///< the hidden folder is ours to remove
};

}  // namespace muster::data

#pragma once
// The folder of one run (docs/formats/run-folder.md): made with mode 0700 where it was not there,
// held by an exclusive flock while `muster run` lives, readable by others of the user at any
// moment. Owner: the run's main thread.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file_system.h"
#include "base/result.h"
#include "base/strong_id.h"

namespace muster::agent {

struct RunFacts {
  std::string id;
  std::string name;
  std::string version;
  std::uint32_t ranks = 0;
  std::string job_yaml;
};

class RunFolder {
 public:
  /// Makes `path` (parents too), claims it (claim.h) and writes job.yaml. Conflict when another run
  /// holds it, AlreadyExists when it holds an earlier run or files of others. Until Begin the
  /// folder can be used again.
  static Result<RunFolder> Create(FileSystem& files, const std::string& path, const RunFacts& facts,
                                  const Clock& clock);

  /// Writes run.json: from here on there was a run in it.
  Status Begin();

  Instant created() const { return created_; }
  const std::string& path() const { return path_; }  ///< absolute
  std::string At(std::string_view name) const { return path_ + "/" + std::string(name); }

  /// Where the folder is now: somebody may have moved it. "" when it is gone.
  std::string Now() const;
  /// Follows a folder that was moved.
  Status Write(std::string_view name, std::string_view text, unsigned mode = 0644);
  FileSystem& files() const { return *files_; }

 private:
  RunFolder(FileSystem& files, std::string path, Fd here, Fd lock, std::string facts,
            Instant created)
      : files_(&files),
        path_(std::move(path)),
        here_(std::make_shared<Fd>(std::move(here))),
        lock_(std::make_shared<Fd>(std::move(lock))),
        facts_(std::move(facts)),
        created_(created) {}
  FileSystem* files_;
  std::string path_;
  std::shared_ptr<Fd> here_;  ///< the folder itself, whatever its name; of all copies
  std::shared_ptr<Fd> lock_;  ///< of all copies
  std::string facts_;         ///< run.json
  Instant created_;
};

/// `generation` of the run in `folder`, durable before it returns. When the disk is full the number
/// is written over the old one in place, which needs no new block.
Status WriteGeneration(FileSystem& files, const std::string& folder, Generation generation);

/// PARENT/NAME-20261129-221530-ab12
std::string DefaultRunFolder(const std::string& parent, const std::string& name,
                             const std::string& id, WallTime now);

}  // namespace muster::agent

#include "agent/run_job.h"

#include "agent/coordinator/run_loop.h"
#include "base/id.h"

namespace muster::agent {

Result<RunOutcome> RunJob(const RunOptions& options) {
  const std::string id = SystemIds().Next(8);
  const std::string path = options.folder.empty()
                               ? DefaultRunFolder(options.name, id, SystemClock().Wall())
                               : options.folder;
  RunFolder folder = MUSTER_TRY(RunFolder::Create(PosixFiles(), path,
                                                  {.id = id,
                                                   .name = options.name,
                                                   .version = options.version,
                                                   .ranks = options.ranks,
                                                   .job_yaml = options.job_yaml},
                                                  SystemClock()));
  const auto run = MUSTER_TRY(RunLoop::Create(options, std::move(folder), id));
  return run->Run();
}

}  // namespace muster::agent

#pragma once
// `muster agent --join`: one node of a job, from its join to the job's end. Called once a process,
// from its main thread, before it has other threads: it blocks signals, becomes a subreaper and
// ignores SIGPIPE.
//
// It ends with the job, on a signal, or when the coordinator gave it up or stays out of reach for
// the patience of the link; its workers end with it in every case.

#include <functional>
#include <string>

#include "agent/remote/agent_link.h"
#include "agent/run_job.h"

namespace muster::agent {

struct AgentOptions {
  LinkOptions link;
  /// Where the record of a run goes whose folder is not on this host: below it, by run id.
  std::string state_folder;
  /// The coordinator's side of a pipe: its end means that it died, and ends the job here; −1: none.
  int lifeline_fd = -1;
  bool json = false;  ///< stdout belongs to the result: workers' lines go to stderr
  /// From the job of the ticket, in the file, to what its ranks run here.
  std::function<Result<RunOptions>(const JobTicket&, const std::string& job_file)> options_for;
};

/// The exit code: 0 at the end of the job, 128 + signal. Errors: it could not join, or was given
/// up.
Result<int> RunAgent(const AgentOptions& options);

}  // namespace muster::agent

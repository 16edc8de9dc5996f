#pragma once
// The last things that a run leaves: result.json, and what the user is told to look at and to type.
// For the coordinator, and for the process that the user started when no coordinator follows any
// more. Owner: either's main thread.

#include <cstdint>
#include <optional>
#include <string>

#include "agent/logs/console.h"
#include "agent/run/run_folder.h"
#include "agent/run_job.h"
#include "base/clock.h"
#include "base/result.h"
#include "profile/report/lost.h"

namespace muster::agent {

/// What result.json says.
struct RunEnd {
  bool succeeded = false;
  int exit_code = 0;
  std::string reason;
  std::string folder;
  Instant begin{};
  Instant ended{};
  std::optional<std::uint64_t> steps;  ///< empty: no rank reports them
  std::uint64_t restarts = 0;
  profile::LostSeconds lost;
  std::optional<double> goodput;
};
std::string FormatResult(const RunEnd& end, const Clock& clock);

/// As it can be typed here.
std::string ShortPath(const std::string& path);

/// What there is to be looked up and done about a run that is over.
struct WhatNext {
  bool succeeded = false;
  std::string log;         ///< below the folder, which tells of the fault; "": none
  std::uint32_t rank = 0;  ///< whose log
  std::string advice;
  std::uint64_t durable = 0;  ///< the newest checkpoint; 0: none
};
/// Names the folder where it is now; of one that is gone no command is told that could not work.
void TellWhatNext(Console& console, const RunFolder& folder, const WhatNext& next,
                  const std::string& job_yaml);

/// Ends the record of a run whose coordinators are gone, for `why`: an event, result.json, and the
/// words of any end, with figures that are worked out of its records. Nothing for a run that did
/// not begin, or that wrote its end itself.
std::optional<RunOutcome> EndForCoordinator(const RunOptions& options, RunFolder& folder,
                                            const Error& why, const Clock& clock);

}  // namespace muster::agent

#pragma once
// Prints what a LogReader gives: what is there, and with `follow` what comes until the run is over,
// which its lock tells. One thread.

#include "base/result.h"
#include "cli/log_printer.h"
#include "profile/logs/log_reader.h"

namespace muster::cli {

/// The exit code: 130 after Ctrl-C while it follows.
Result<int> ShowLogs(const profile::RunFiles& files, profile::LogReader& reader,
                     const LogLook& look, bool follow);

}  // namespace muster::cli

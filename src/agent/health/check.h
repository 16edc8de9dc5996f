#pragma once
// One thing that is looked at before work is given to a machine, and what was found. The checks
// themselves are functions in reading_checks.h (files and limits, which tests give) and
// measuring_checks.h (they use the machine for a moment). Values; pure.

#include <string>
#include <string_view>
#include <vector>

namespace muster::agent::health {

struct Check {
  enum class Verdict {
    kOk,
    kWarn,     ///< jobs run, some of them worse or not at all
    kFail,     ///< jobs cannot run here
    kSkipped,  ///< not looked at: `advice` says why, or how it is
  };
  std::string name;  ///< stable, for JSON: "nofile"
  Verdict verdict = Verdict::kOk;
  std::string measured;  ///< "1024 (hard 1048576)"
  std::string limit;     ///< what it is held against: "4096 or more"
  std::string advice;    ///< what to do; empty where nothing is to be done
};

std::string_view NameOf(Check::Verdict verdict);  ///< "ok", "warn", "fail", "skipped"
/// Whether none failed.
bool Healthy(const std::vector<Check>& checks);

}  // namespace muster::agent::health

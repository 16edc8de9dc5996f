#include "spec/import/run_policy.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "base/duration.h"
#include "spec/import/log_monitoring.h"

namespace muster::spec {
namespace {

using Fate = ImportedField::Fate;

constexpr std::uint64_t kMostCount = std::numeric_limits<std::int32_t>::max();

constexpr std::array<OtherField, 6> kFields = {{
    {"cleanPodPolicy", Fate::kNoMeaning,
     "workers and what they started are always ended; logs stay in the run folder"},
    {"faultDeadlineSeconds", Fate::kNotYet, "a recovery has no time limit of its own"},
    {"startupDeadlineSeconds", Fate::kNotYet,
     "a start has no time limit of its own; a log rule with startWithin is near it"},
    {"suspend", Fate::kNoMeaning, "muster run starts at once"},
    {"ttlSecondsAfterFinished", Fate::kNoMeaning, "a run folder stays until you remove it"},
    {"workloadMode", Fate::kNoMeaning, "there are no pods"},
}};

constexpr std::array<OtherField, 2> kRestartFields = {{
    {"maxNumRepeatOffendersToAvoid", Fate::kNotYet,
     "a node that fails again and again is not avoided; one that is lost is replaced"},
    {"scaleUpSnoozeTimeInSeconds", Fate::kNotYet,
     "nodes that join are taken in at the next restart, which they do not cause"},
}};

void ReadSeconds(Fields& fields, std::string_view key, std::string_view ours,
                 std::optional<Duration>& out, Import& import) {
  std::uint64_t seconds = 0;
  const Value* value = fields.Whole(key, kMostCount, seconds);
  if (value == nullptr) return;
  out = std::chrono::seconds(seconds);
  import.Took(*value, fields.PathOf(key), std::string(ours), FormatExact(*out));
}

const Value* ReadCount(Fields& fields, std::string_view key, std::string_view ours,
                       std::uint32_t& out, Import& import) {
  std::uint64_t count = 0;
  const Value* value = fields.Whole(key, kMostCount, count);
  if (value == nullptr) return nullptr;
  out = static_cast<std::uint32_t>(count);
  import.Took(*value, fields.PathOf(key), std::string(ours), std::to_string(count));
  return value;
}

void ReadRestartPolicy(const Value& value, const std::string& path, Import& import) {
  Fields policy(value, path, import);
  if (!policy.valid()) return;
  RestartPolicy& restart = import.out.job.restart;
  std::optional<Duration> period;
  ReadSeconds(policy, "evalPeriodSeconds", "spec.restart.evalPeriod", period, import);
  if (period) restart.eval_period = *period;
  ReadCount(policy, "numRestartBeforeFullJobRestart", "spec.restart.processRestarts",
            restart.process_restarts, import);
  ReadCount(policy, "maxFullJobRestarts", "spec.restart.fullRestarts", restart.full_restarts,
            import);
  policy.Others(kRestartFields);
  policy.Finish();
}

}  // namespace

void ReadRunPolicy(const Value& value, const std::string& path, bool several, Import& import) {
  Fields policy(value, path, import);
  if (!policy.valid()) return;
  Job& job = import.out.job;
  std::uint32_t retries = 0;
  const Value* total = ReadCount(policy, "jobMaxRetryCount", "spec.restart.total", retries, import);
  if (total != nullptr) job.restart.total = retries;
  const Value* restart = policy.Take("restartPolicy");
  if (restart != nullptr) {
    ReadRestartPolicy(*restart, policy.PathOf("restartPolicy"), import);
  } else if (total != nullptr) {
    // Without the finer budget only the whole run's counts.
    job.restart.process_restarts = retries;
    job.restart.full_restarts = 0;
    import.Took(*total, policy.PathOf("jobMaxRetryCount"), "spec.restart.processRestarts",
                fmt::format("{}, fullRestarts: 0, as there is no restartPolicy", retries));
    import.out.sources.insert_or_assign("spec.restart.fullRestarts",
                                        policy.PathOf("jobMaxRetryCount"));
  }
  ReadSeconds(policy, "activeDeadlineSeconds", "spec.timeLimit", job.time_limit, import);
  policy.Others(kFields);
  ReadLogMonitoring(policy, several, import);
  policy.Finish();
}

}  // namespace muster::spec

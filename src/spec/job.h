#pragma once
// The job file (docs/reference/job-file.md): what a user submits, the same for `muster run`, the
// queue and Kubernetes. Plain values; a default that a file need not repeat is in its initialiser.
//
// ParseJob reads YAML or JSON of at most kMaxJobBytes, never throws, and reports every fault of the
// file in one Invalid error, a line each: "job.yaml:7:3: unknown key 'prioirty' in spec: did you
// mean 'priority'?". PrintJobYaml and PrintJobJson print it normalised: every key, in one order;
// ParseJob(PrintJobYaml(job)) == job.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file_system.h"
#include "base/result.h"
#include "spec/log_rule.h"

namespace muster::spec {

using Duration = std::chrono::nanoseconds;

inline constexpr Bytes kMaxJobBytes = 256_KiB;

/// How many nodes the job takes: exactly min when both are equal.
struct NodeRange {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  bool operator==(const NodeRange&) const = default;
};

/// How many ranks run on a node. What auto, cpu and gpu mean is known on the node only.
struct RanksPerNode {
  enum class Kind {
    kCount,  ///< `count`
    kAuto,   ///< one a GPU where there are GPUs, else one a core
    kCpu,    ///< one a core
    kGpu,    ///< one a GPU
  };
  Kind kind = Kind::kCount;
  std::uint32_t count = 1;
  bool operator==(const RanksPerNode&) const = default;
};

/// Kept ready beside the job: parked processes on its nodes, whole nodes beside them.
struct Spares {
  std::uint32_t processes = 0;
  std::uint32_t nodes = 0;
  bool operator==(const Spares&) const = default;
};

/// What the job may use of each node; 0 asks for nothing and limits nothing.
struct Resources {
  std::uint64_t cpu_milli = 0;  ///< thousandths of a core
  Bytes memory;
  std::uint32_t gpu = 0;
  bool operator==(const Resources&) const = default;
};

struct CheckpointPlan {
  std::string dir = "checkpoints";  ///< relative to the run folder
  std::uint64_t every = 0;          ///< optimizer steps; 0: the program decides
  bool operator==(const CheckpointPlan&) const = default;
};

struct DataSource {
  std::string uri;     ///< s3://bucket/prefix, file:///path, or a path
  std::string at;      ///< absolute path where workers find it; empty: where it is
  bool stage = false;  ///< copy it to the node before the job starts
  bool operator==(const DataSource&) const = default;
};

/// How often the job may be started again within `eval_period` before it fails.
struct RestartPolicy {
  Duration eval_period = std::chrono::hours(6);
  std::uint32_t process_restarts = 3;
  std::uint32_t full_restarts = 1;
  std::optional<std::uint32_t> total;  ///< of both kinds, in the whole life of the run
  bool in_place = true;                ///< keep the ranks that can outlive the one that died
  std::optional<Duration> hang_limit;  ///< how long ranks without heartbeat may stand still
  Duration node_lease = std::chrono::seconds(15);  ///< how long a node may be silent
  bool operator==(const RestartPolicy&) const = default;
};

struct Job {
  std::string name;
  std::string queue = "default";
  std::string share = "default";
  std::uint32_t priority = 0;  ///< 0 … 9999, more is sooner
  NodeRange nodes;
  RanksPerNode ranks_per_node;
  Spares spares;
  Resources resources;
  std::vector<std::string> command;  ///< no shell; $MUSTER_DATA_0 … are expanded (command.h)
  std::optional<Duration> time_limit;
  std::optional<Duration> estimate;  ///< for backfill
  CheckpointPlan checkpoint;
  std::vector<DataSource> data;
  RestartPolicy restart;
  std::vector<LogRule> log_rules;
  bool operator==(const Job&) const = default;
};

/// A job with the keys that its file gave: "spec.nodes", "spec.data[0].at".
struct ParsedJob {
  Job job;
  std::set<std::string> given;
};

/// `file` is the name in errors; one that ends in .json is read as JSON, .yaml and .yml as YAML,
/// another by its first character.
Result<ParsedJob> ParseJob(std::string_view text, std::string_view file);
Result<ParsedJob> ReadJob(FileSystem& files, const std::string& path);
/// The checks of ParseJob that need no text, for a job made from flags. Errors name the key.
Status ValidateJob(const Job& job);

std::string PrintJobYaml(const Job& job);
/// The same, with "# default" behind each key that the file left out.
std::string PrintJobYaml(const ParsedJob& parsed);
/// The same, with "# from FIELD" behind each key that `sources` has, "# default" behind the others.
std::string PrintJobYaml(const Job& job, const std::map<std::string, std::string>& sources);
std::string PrintJobJson(const Job& job);

}  // namespace muster::spec

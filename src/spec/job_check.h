#pragma once
// What makes no sense in a job, whoever wrote it: a file, flags, later an importer. Pure. Internal
// to src/spec; others call ValidateJob.

#include <cstdint>
#include <string>
#include <vector>

#include "spec/job.h"

namespace muster::spec {

inline constexpr std::uint32_t kMostNodes = 100'000;
inline constexpr std::uint32_t kMostRanksPerNode = 4096;
inline constexpr std::uint32_t kMostPriority = 9999;  // AWS Batch's schedulingPriority
inline constexpr std::size_t kMostArguments = 4096;
inline constexpr std::size_t kMostData = 64;
inline constexpr std::size_t kMostLogRules = 64;
inline constexpr std::size_t kLongestName = 63;  // a Kubernetes label value

struct JobFault {
  std::string path;  ///< "spec.data[0].at"
  std::string message;
};

/// In the order of the keys; empty for a job that can be run.
std::vector<JobFault> CheckJob(const Job& job);

}  // namespace muster::spec

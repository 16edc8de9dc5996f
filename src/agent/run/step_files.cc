#include "agent/run/step_files.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace muster::agent {

std::string FormatStep(const os::StepRecord& record) {
  const std::string loss =
      std::isfinite(record.loss) ? fmt::format("{}", record.loss) : std::string("null");
  std::string phases;
  constexpr os::Phase kTimed[] = {os::Phase::kData, os::Phase::kForward,   os::Phase::kBackward,
                                  os::Phase::kComm, os::Phase::kOptimizer, os::Phase::kCheckpoint,
                                  os::Phase::kEval};
  for (std::size_t i = 0; i < record.phase_us.size(); ++i) {
    phases +=
        fmt::format("{}\"{}\":{}", i == 0 ? "" : ",", os::NameOf(kTimed[i]), record.phase_us[i]);
  }
  return fmt::format(
      "{{\"seq\":{},\"step\":{},\"gen\":{},\"begin_ns\":{},\"total_us\":{},\"loss\":{},"
      "\"phase_us\":{{{}}}}}\n",
      record.sequence, record.step, record.generation, record.begin_ns, record.total_us, loss,
      phases);
}

StepFiles::StepFiles(FileSystem& files, const std::string& folder, std::uint32_t ranks)
    : lines_(ranks) {
  for (std::uint32_t i = 0; i < ranks; ++i) {
    files_.emplace_back(files, fmt::format("{}/rank-{}.jsonl", folder, i));
  }
}

void StepFiles::Add(Rank rank, const os::StepRecord& record) {
  lines_[rank.value()] += FormatStep(record);
}

void StepFiles::Write() {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (!lines_[i].empty()) files_[i].Append(std::exchange(lines_[i], {}));
  }
}

std::uint64_t StepFiles::unwritten_bytes() const {
  std::uint64_t bytes = 0;
  for (const AppendFile& file : files_) bytes += file.lost_bytes() + file.waiting_bytes();
  return bytes;
}

bool StepFiles::Flush() {
  bool all = true;
  for (AppendFile& file : files_) all = file.Flush() && all;
  return all;
}

}  // namespace muster::agent

#include "agent/run/step_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace muster::agent {

namespace {

constexpr std::int64_t kTail = 4096;  // some lines

/// The number of the last whole line's record; 0 without one.
std::uint64_t LastRecordIn(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return 0;
  const std::int64_t size = file.tellg();
  file.seekg(std::max<std::int64_t>(0, size - kTail));
  const std::string tail(std::istreambuf_iterator<char>(file), {});
  constexpr std::string_view kFront = "{\"seq\":";
  const std::size_t last = tail.rfind(kFront, tail.rfind('\n'));
  if (last == std::string::npos || tail.rfind('\n') == std::string::npos) return 0;
  return std::strtoull(tail.c_str() + last + kFront.size(), nullptr, 10);
}

}  // namespace

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
    : lines_(ranks), written_(ranks) {
  for (std::uint32_t i = 0; i < ranks; ++i) {
    paths_.push_back(fmt::format("{}/rank-{}.jsonl", folder, i));
    files_.emplace_back(files, paths_.back());
  }
}

void StepFiles::GoOn() {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    written_[i] = LastRecordIn(paths_[i]);
    files_[i].GoOn();
  }
}

void StepFiles::Add(Rank rank, const os::StepRecord& record) {
  if (record.sequence > written_[rank.value()]) lines_[rank.value()] += FormatStep(record);
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

#include "agent/run/rank_board.h"

#include <fmt/format.h>

#include <cmath>

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

Result<RankBoard> RankBoard::Create(FileSystem& files, const std::string& folder,
                                    std::uint32_t ranks) {
  RankBoard board;
  for (std::uint32_t i = 0; i < ranks; ++i) {
    board.pages_.push_back(MUSTER_TRY(os::HeartbeatReader::Create(Rank(i))));
    board.files_.emplace_back(files, fmt::format("{}/rank-{}.jsonl", folder, i));
  }
  board.sequence_.resize(ranks);
  return board;
}

void RankBoard::Drain(const OnStep& on_step) {
  for (std::uint32_t i = 0; i < pages_.size(); ++i) {
    std::string lines;
    for (const os::StepRecord& record : pages_[i].StepsAfter(sequence_[i])) {
      missed_ += record.sequence - sequence_[i] - 1;
      sequence_[i] = record.sequence;
      lines += FormatStep(record);
      on_step(Rank(i), record);
    }
    if (!lines.empty()) files_[i].Append(lines);
  }
}

std::uint64_t RankBoard::unwritten_bytes() const {
  std::uint64_t bytes = 0;
  for (const AppendFile& file : files_) bytes += file.lost_bytes() + file.waiting_bytes();
  return bytes;
}

bool RankBoard::Flush() {
  bool all = true;
  for (AppendFile& file : files_) all = file.Flush() && all;
  return all;
}

}  // namespace muster::agent

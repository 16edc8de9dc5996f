#include "agent/node/heartbeat_pages.h"

namespace muster::agent {

Result<HeartbeatPages> HeartbeatPages::Create(RankRange ranks) {
  HeartbeatPages pages(ranks);
  for (std::uint32_t i = 0; i < ranks.count; ++i) {
    pages.pages_.push_back(MUSTER_TRY(os::HeartbeatReader::Create(ranks.At(i))));
  }
  pages.sequence_.resize(ranks.count);
  return pages;
}

void HeartbeatPages::Drain(const OnStep& on_step) {
  for (std::uint32_t i = 0; i < pages_.size(); ++i) {
    for (const os::StepRecord& record : pages_[i].StepsAfter(sequence_[i])) {
      missed_ += record.sequence - sequence_[i] - 1;
      sequence_[i] = record.sequence;
      on_step(ranks_.At(i), record);
    }
  }
}

}  // namespace muster::agent

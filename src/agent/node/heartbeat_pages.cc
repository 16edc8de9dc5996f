#include "agent/node/heartbeat_pages.h"

namespace muster::agent {

Result<HeartbeatPages> HeartbeatPages::Create(std::uint32_t ranks) {
  HeartbeatPages pages;
  for (std::uint32_t i = 0; i < ranks; ++i) {
    pages.pages_.push_back(MUSTER_TRY(os::HeartbeatReader::Create(Rank(i))));
  }
  pages.sequence_.resize(ranks);
  return pages;
}

void HeartbeatPages::Drain(const OnStep& on_step) {
  for (std::uint32_t i = 0; i < pages_.size(); ++i) {
    for (const os::StepRecord& record : pages_[i].StepsAfter(sequence_[i])) {
      missed_ += record.sequence - sequence_[i] - 1;
      sequence_[i] = record.sequence;
      on_step(Rank(i), record);
    }
  }
}

}  // namespace muster::agent

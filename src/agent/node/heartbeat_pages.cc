#include "agent/node/heartbeat_pages.h"

#include <fmt/format.h>

namespace muster::agent {

std::string PageName(Rank rank) { return fmt::format("page.{}", rank.value()); }

Result<HeartbeatPages> HeartbeatPages::Create(RankRange ranks) {
  HeartbeatPages pages(ranks);
  for (std::uint32_t i = 0; i < ranks.count; ++i) {
    pages.pages_.push_back(MUSTER_TRY(os::HeartbeatReader::Create(ranks.At(i))));
  }
  pages.sequence_.resize(ranks.count);
  return pages;
}

Result<HeartbeatPages> HeartbeatPages::Adopt(RankRange ranks, std::vector<Fd> fds,
                                             std::vector<std::uint64_t> sequences) {
  HeartbeatPages pages(ranks);
  for (Fd& fd : fds) pages.pages_.push_back(MUSTER_TRY(os::HeartbeatReader::Adopt(std::move(fd))));
  pages.sequence_ = std::move(sequences);
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

#include "train/standing.h"

#include <algorithm>
#include <vector>

namespace muster::train {
namespace {

// As it travels: nobody else reads it.
struct Word {
  std::uint64_t has = 0;
  std::uint64_t step = 0;
  std::uint64_t stage = 0;
};

}  // namespace

Result<std::optional<Meeting>> Meet(coll::Group& group, const std::optional<Standing>& mine) {
  Word word;
  if (mine) word = {1, mine->step, static_cast<std::uint64_t>(mine->stage)};
  std::vector<Word> all(group.world());
  MUSTER_TRY(group.AllGather(std::as_bytes(std::span(&word, 1)),
                             std::as_writable_bytes(std::span(all)), "standing"));
  std::optional<Meeting> meeting;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].has == 0 || (meeting && all[i].step < meeting->step)) continue;
    const auto stage = static_cast<Stage>(all[i].stage);
    if (!meeting || all[i].step > meeting->step) {
      meeting = Meeting{Rank(static_cast<std::uint32_t>(i)), all[i].step, stage};
    } else {
      meeting->stage = std::min(meeting->stage, stage);
    }
  }
  return meeting;
}

Status CopyState(coll::Group& group, Rank source, FlatModel& model, AdamW& optimizer) {
  for (std::size_t i = 0; i < model.units().size(); ++i) {
    for (const std::span<float> part :
         {model.units()[i]->values(), optimizer.Moment1(i), optimizer.Moment2(i)}) {
      MUSTER_TRY(group.Broadcast(std::as_writable_bytes(part), source, "state"));
    }
  }
  std::uint64_t steps = optimizer.steps();
  MUSTER_TRY(group.Broadcast(std::as_writable_bytes(std::span(&steps, 1)), source, "state"));
  optimizer.RestoreSteps(steps);
  return Ok();
}

}  // namespace muster::train

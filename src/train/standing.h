#pragma once
// What each rank has when a generation meets, and how the ranks that lack something get it from one
// that has it. Data parallel replicates the state, so any rank at the highest step will do: the
// lowest is taken. After a fault the survivors have the state of their last step and the ranks that
// were started anew have none; at the first start nobody has any.
//
// Every function is a collective: all ranks call it. Training thread.

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "coll/group.h"
#include "train/flat.h"
#include "train/optim/adamw.h"

namespace muster::train {

/// What of an applied step is done.
enum class Stage : std::uint32_t { kApplied, kSaved, kEvaluated };

struct Standing {
  std::uint64_t step = 0;           ///< applied, in this rank's memory
  Stage stage = Stage::kEvaluated;  ///< of that step
};

struct Meeting {
  Rank source;  ///< of the state
  std::uint64_t step = 0;
  Stage stage = Stage::kEvaluated;  ///< the least that a rank with the state has done
};

/// Nothing when no rank has any state. `mine` is empty when this rank has none.
Result<std::optional<Meeting>> Meet(coll::Group& group, const std::optional<Standing>& mine);

/// Weights, moments and the optimizer's count of `source` on every rank. After an error a rank that
/// was to receive has parts of two states.
Status CopyState(coll::Group& group, Rank source, FlatModel& model, AdamW& optimizer);

}  // namespace muster::train

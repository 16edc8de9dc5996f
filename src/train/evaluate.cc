#include "train/evaluate.h"

#include "train/backward.h"
#include "train/sums.h"

namespace muster::train {
namespace {

// Loss sums by part, then the two counts, in one buffer for one all-reduce. Parts of other ranks
// are zero here, and adding zeros is exact.
class Totals {
 public:
  explicit Totals(std::size_t parts) : parts_(parts), values_(parts + 2) {}

  void Add(std::size_t part, const Score& score) {
    values_[part] += score.loss_sum;
    values_[parts_] += static_cast<double>(score.correct);
    values_[parts_ + 1] += static_cast<double>(score.count);
  }
  Status Reduce(coll::Group& group) {
    if (group.world() == 1) return Ok();
    return group.AllReduceDouble(values_, "evaluation");
  }
  Score Sum() const {
    return {.loss_sum = TreeSum(std::span(values_).first(parts_)),
            .correct = static_cast<std::uint64_t>(values_[parts_]),
            .count = static_cast<std::uint64_t>(values_[parts_ + 1])};
  }

 private:
  std::size_t parts_;
  std::vector<double> values_;
};

}  // namespace

Result<Score> Evaluate(Task& task, Worker& worker, std::shared_ptr<const data::Dataset> dataset,
                       const EvaluateOptions& options) {
  const std::uint32_t world = worker.group.world();
  const bool by_rank = options.virtual_shards == 0;
  auto loader = MUSTER_TRY(
      Within("evaluation",
             data::Loader::Create(std::move(dataset), {.global_batch = options.batch,
                                                       .virtual_shards = options.virtual_shards,
                                                       .rank = worker.group.rank(),
                                                       .world = world,
                                                       .order = data::OrderMode::kSequential,
                                                       .tail = data::Tail::kPad,
                                                       .epochs = 1,
                                                       .image = options.image,
                                                       .colour = options.colour,
                                                       .classes = options.classes,
                                                       .threads = options.decode_threads})));
  Totals totals(by_rank ? world : options.virtual_shards);
  for (;;) {
    worker.heartbeat.Enter(os::Phase::kEval, worker.clock.Now());
    auto next = Within("evaluation", loader->Next());
    if (!next) NoteDataLoss(worker, next.error());
    const auto batch = MUSTER_TRY(std::move(next));
    if (!batch) break;
    for (const data::MicroShard& shard : batch->shards()) {
      if (shard.valid == 0) continue;
      MUSTER_TRY(Guarded("evaluation", [&] {
        const std::size_t part = by_rank ? worker.group.rank().value() : shard.index;
        totals.Add(part, task.Evaluate({.shard = &shard, .image = options.image}));
        return Ok();
      }));
    }
  }
  worker.heartbeat.Enter(os::Phase::kComm, worker.clock.Now());  // waits for the slowest rank
  MUSTER_TRY(totals.Reduce(worker.group));
  worker.heartbeat.Enter(os::Phase::kEval, worker.clock.Now());
  return totals.Sum();
}

}  // namespace muster::train

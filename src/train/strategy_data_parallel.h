#pragma once
// Data parallel: every rank has the whole model, and after backward the same sum of gradients. A
// unit is a bucket, reduced when its last gradient of the step is there and those of the units
// behind it: on the group's progress thread while the units before it are still in backward
// (kOnThread), or by the training thread in between (kInline), with the same bits. The order of the
// reductions is the reverse order of the units, whatever autograd does, so ranks cannot disagree
// about it.
//
// A step is `passes` micro-batches. In canonical mode they are the rank's virtual micro-shards and
// their sum, continued over the ranks by the collectives, is one fixed tree. In fast mode there is
// one, the rank's whole share.
//
//   MUSTER_TRY(strategy.BeginStep(count));
//   for each pass: BeginPass, forward, Backward(loss);
//   const double mean = MUSTER_TRY(strategy.FinishStep());
//
// The loss is (sum, count): BeginStep adds the counts of all ranks, so that backward scales by the
// global one. Training thread; model and group must outlive it.

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "coll/group.h"
#include "train/flat.h"
#include "train/gradient_tree.h"
#include "train/nn/ops.h"

namespace muster::train {

/// Every rank takes the same.
enum class Overlap {
  kOnThread,  ///< on the group's progress thread, during backward; pays with a core to spare a rank
  kInline,    ///< by the training thread, when the unit is ready
};

struct DataParallelOptions {
  std::uint32_t passes = 1;  ///< micro-batches of a rank in a step; a power of two
  Overlap overlap = Overlap::kInline;
  /// Runs whatever blocks on other ranks; a place to time it. Empty: runs it plainly.
  std::function<Status(const std::function<Status()>&)> around_collective;
};

class DataParallel {
 public:
  DataParallel(FlatModel& model, coll::Group& group, const DataParallelOptions& options);
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// `count`: samples (or their weights) of this rank in the whole step. A collective.
  Status BeginStep(double count);
  void BeginPass();
  /// Runs backward of the current pass, scaled by the global count.
  Status Backward(const nn::LossSum& loss);
  /// Waits until every gradient is reduced; the mean loss over the global batch. A collective.
  Result<double> FinishStep();

 private:
  void UnitReady(Unit& unit);
  Status Reduce(Unit& unit);
  void ReduceInOrder();
  Status WaitDownTo(std::size_t most);
  Status Collective(const std::function<Status()>& body) const;

  FlatModel* model_;
  coll::Group* group_;
  DataParallelOptions options_;
  GradientTree tree_;
  std::vector<bool> ready_;  // by unit, in the last pass of a step
  std::size_t left_ = 0;     // units not yet handed to the group
  std::uint32_t pass_ = 0;   // passes finished in this step
  double global_count_ = 0;
  std::vector<double> losses_;          // of the passes of this step
  std::vector<coll::Pending> pending_;  // of this step, in order
  std::size_t waited_ = 0;              // of them, from the front
  Status status_;  // the first failure inside backward, where nothing can be returned
};

}  // namespace muster::train

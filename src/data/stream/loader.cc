#include "data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "data/stream/batch_filler.h"
#include "data/stream/decode_pool.h"

namespace muster::data {
namespace {

constexpr std::size_t kMaxDepth = 64;

Error Differs(std::string_view field, std::string_view theirs, std::string_view ours) {
  return Error(
      Code::kPrecondition,
      fmt::format("the saved position is of {} {}, this loader has {}", field, theirs, ours),
      "continue with the same dataset and options, or start a new run");
}

class ThreadedLoader final : public Loader {
 public:
  explicit ThreadedLoader(BatchFiller filler) : filler_(std::move(filler)) {}

  Result<std::optional<Batch>> Next() override {
    if (step_ == EndStep()) return std::nullopt;
    auto storage = filler_.options().threads == 0 ? FillHere() : TakeFromPool();
    if (!storage) return std::move(storage).error();
    ++step_;
    return Batch(std::move(*storage));
  }

  LoaderState State() const override { return StateAt(step_); }

  LoaderState StateAt(std::uint64_t steps) const override {
    const LoaderOptions& options = filler_.options();
    return {.dataset = filler_.dataset().id(),
            .mode = options.order,
            .window = options.window,
            .seed = options.seed,
            .epoch = steps / steps_per_epoch(),
            .samples = steps % steps_per_epoch() * options.global_batch,
            .batch = options.global_batch};
  }

  Status Restore(const LoaderState& state) override {
    const LoaderState mine = State();
    const auto number = [](auto value) { return fmt::format("{}", value); };
    if (state.dataset != mine.dataset) {
      return Differs("dataset", state.dataset.Hex(), mine.dataset.Hex());
    }
    if (state.order_version != mine.order_version) {
      return Differs("order version", number(state.order_version), number(mine.order_version));
    }
    if (state.mode != mine.mode) return Differs("order", NameOf(state.mode), NameOf(mine.mode));
    if (state.window != mine.window) {
      return Differs("window", number(state.window), number(mine.window));
    }
    if (state.seed != mine.seed) return Differs("seed", number(state.seed), number(mine.seed));
    if (state.batch != mine.batch) {
      return Differs("global batch", number(state.batch), number(mine.batch));
    }
    return SeekTo(state);
  }

  std::uint64_t steps_per_epoch() const override { return filler_.steps_per_epoch(); }
  const ImageShape& image() const override { return filler_.image(); }

 private:
  std::uint64_t EndStep() const {
    const std::uint64_t epochs = filler_.options().epochs;
    std::uint64_t end = 0;
    const bool endless = epochs == 0 || __builtin_mul_overflow(epochs, steps_per_epoch(), &end);
    return endless ? std::numeric_limits<std::uint64_t>::max() : end;
  }

  Status SeekTo(const LoaderState& state) {
    const std::uint64_t steps = state.samples / state.batch;
    std::uint64_t target = 0;
    if (state.samples % state.batch != 0 || steps >= steps_per_epoch() ||
        __builtin_mul_overflow(state.epoch, steps_per_epoch(), &target) ||
        __builtin_add_overflow(target, steps, &target)) {
      return Error(Code::kPrecondition,
                   fmt::format("the saved position epoch {}, sample {} is not one of "
                               "this loader's",
                               state.epoch, state.samples));
    }
    pool_.reset();
    step_ = target;
    return Ok();
  }

  Result<std::shared_ptr<const BatchStorage>> FillHere() {
    auto storage = filler_.NewStorage(step_);
    const auto order = filler_.OrderOf(step_);
    for (std::size_t shard = 0; shard < filler_.shards(); ++shard) {
      MUSTER_TRY(filler_.Fill(*order, shard, *storage));
    }
    return storage;
  }

  Result<std::shared_ptr<const BatchStorage>> TakeFromPool() {
    if (!pool_) {
      const auto cap =
          static_cast<std::size_t>(std::max<std::int64_t>(filler_.options().memory.count, 0));
      pool_ = MUSTER_TRY(DecodePool::Start(
          filler_, {.first_step = step_,
                    .end_step = EndStep(),
                    .threads = filler_.options().threads,
                    .depth = std::clamp<std::size_t>(cap / filler_.batch_bytes(), 1, kMaxDepth)}));
    }
    return pool_->Take();
  }

  const BatchFiller filler_;
  std::uint64_t step_ = 0;  ///< the next to hand out
  std::unique_ptr<DecodePool> pool_;
};

}  // namespace

Result<std::unique_ptr<Loader>> Loader::Create(std::shared_ptr<const Dataset> dataset,
                                               const LoaderOptions& options) {
  if (options.threads > kMostThreads) {
    return Error(Code::kInvalid,
                 fmt::format("{} decode threads, at most {}", options.threads, kMostThreads));
  }
  return std::unique_ptr<Loader>(std::make_unique<ThreadedLoader>(
      MUSTER_TRY(BatchFiller::Create(std::move(dataset), options))));
}

}  // namespace muster::data

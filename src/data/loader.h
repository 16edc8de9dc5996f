#pragma once
// Loader turns a Dataset into the batches of one rank, decoded ahead by its own threads, in an
// order that depends on nothing but (dataset, seed, epoch, position): not on ranks, threads or
// timing.
//
// Step s of an epoch covers the slots [s·B, (s+1)·B) of the order, B the global batch. With V > 0
// virtual shards, shard v of the step covers [s·B + v·B/V, s·B + (v+1)·B/V), and rank r of w owns
// the shards [r·V/w, (r+1)·V/w); so worlds of 1, 2, 4 and 8 read the same slots in the same micro-
// shards. V = 0: one micro-shard a rank; rank r takes B/w slots, the first B mod w ranks one more.
// Every rank computes the same number of steps.
//
// One thread calls Next/State/Restore; Restore and the destructor stop and join the decode threads.
// Make a Loader after fork, never before. A bad row is an error from the Next of its step: DataLoss
// naming file, batch and row.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "data/dataset.h"
#include "data/decode/image.h"
#include "data/order/loader_state.h"
#include "data/order/order.h"

namespace muster::data {

enum class Tail {
  kDrop,  ///< the rows behind the last whole global batch are left out of this epoch
  kPad,   ///< the last batch is filled up with repeated rows that `valid` masks out
};

struct LoaderOptions {
  std::uint32_t global_batch = 128;
  std::uint32_t virtual_shards = 8;  ///< V; must divide the batch, and the world must divide it
  Rank rank;
  std::uint32_t world = 1;
  std::uint64_t seed = 0;
  OrderMode order = OrderMode::kWindow;
  std::uint32_t window = kDefaultWindow;  ///< shards that are shuffled together, mode window
  Tail tail = Tail::kDrop;
  std::uint64_t epochs = 0;  ///< stop after so many; 0: go on for ever
  /// Every image must have this height and width. All zero: those of row 0.
  ImageShape image;
  Colour colour = Colour::kKeep;  ///< of images that have other channels than `image`
  std::uint32_t classes = 0;      ///< every label must be below this and there; 0: not checked
  unsigned threads = 1;           ///< decode threads, at most kMostThreads; 0 decodes inside Next
  Bytes memory = 64_MiB;          ///< hard cap on what is decoded ahead; at least one batch is
};

/// One virtual shard of a step: a tensor of its own. Pixels are u8, NHWC, and start on 64 bytes.
struct MicroShard {
  std::uint32_t index = 0;              ///< v
  std::uint32_t valid = 0;              ///< the first `valid` samples count, the rest are padding
  std::span<const std::uint64_t> rows;  ///< global row numbers: the sample ids
  std::span<const std::int64_t> labels;
  std::span<const std::uint8_t> pixels;  ///< rows.size() × height × width × channels
};

struct BatchStorage;

/// This rank's share of one step. Holds its memory until destroyed, beyond the loader's too.
class Batch {
 public:
  explicit Batch(std::shared_ptr<const BatchStorage> storage) : storage_(std::move(storage)) {}
  std::uint64_t step() const;  ///< since the start of training, over all epochs
  std::uint64_t epoch() const;
  std::span<const MicroShard> shards() const;  ///< by index, ascending

 private:
  std::shared_ptr<const BatchStorage> storage_;
};

class Loader {
 public:
  /// Starts nothing yet; threads start at the first Next. Invalid, naming the option, when the
  /// options contradict each other or the set has fewer rows than a batch (with kDrop).
  static Result<std::unique_ptr<Loader>> Create(std::shared_ptr<const Dataset> dataset,
                                                const LoaderOptions& options);
  virtual ~Loader() = default;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next step's share; nullopt after the last epoch.
  virtual Result<std::optional<Batch>> Next() = 0;
  /// Where the batch after the last returned one begins. The same for every rank and world.
  virtual LoaderState State() const = 0;
  /// The state that State() has after `steps` steps from the start: for resuming at a step number.
  virtual LoaderState StateAt(std::uint64_t steps) const = 0;
  /// Continues at `state`. Precondition, naming the field, when it is of another dataset, seed,
  /// order or global batch.
  virtual Status Restore(const LoaderState& state) = 0;

  virtual std::uint64_t steps_per_epoch() const = 0;
  virtual const ImageShape& image() const = 0;  ///< as decoded

 protected:
  Loader() = default;
};

}  // namespace muster::data

#pragma once
// The whole state of a loader: a position, never a history. Ranks, workers and prefetch do not
// enter, so a checkpoint of a run on two ranks continues on eight. Its text form is at most 200
// bytes and goes into checkpoint manifests:
//   loader/1 dataset=<32 hex> order=1:window:16 seed=7 epoch=3 samples=12800 batch=128
//   context=0
// Value.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "data/dataset_id.h"
#include "data/order/order.h"

namespace muster::data {

struct LoaderState {
  DatasetId dataset;
  std::uint32_t order_version = kOrderVersion;
  OrderMode mode = OrderMode::kWindow;
  std::uint32_t window = kDefaultWindow;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t samples = 0;  ///< of this epoch, consumed by all ranks together
  std::uint32_t batch = 0;    ///< B, the global batch
  std::uint32_t context = 0;  ///< C, tokens a sample, for text; 0 for images
  bool operator==(const LoaderState&) const = default;

  std::string ToText() const;
  /// Invalid, naming the field, when malformed; Precondition for a version that we do not know.
  static Result<LoaderState> Parse(std::string_view text);
};

}  // namespace muster::data

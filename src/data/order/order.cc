#include "data/order/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/rng.h"

namespace muster::data {
namespace {

constexpr std::array<std::pair<OrderMode, std::string_view>, 4> kModes{{
    {OrderMode::kSequential, "sequential"},
    {OrderMode::kShard, "shard"},
    {OrderMode::kWindow, "window"},
    {OrderMode::kFull, "full"},
}};

enum class Use : std::uint64_t { kShards = 1, kRows = 2 };

std::uint64_t KeyOf(const OrderOptions& options, Use use, std::uint64_t which) {
  return Mix(Mix(options.seed, options.epoch), static_cast<std::uint64_t>(use), which);
}

/// The last place whose first position is ≤ `position`. Empty places have none.
std::size_t PlaceOf(std::span<const std::uint64_t> firsts, std::uint64_t position) {
  return static_cast<std::size_t>(std::upper_bound(firsts.begin(), firsts.end(), position) -
                                  firsts.begin()) -
         1;
}

}  // namespace

std::string_view NameOf(OrderMode mode) { return kModes[static_cast<std::size_t>(mode)].second; }

Result<OrderMode> ParseOrderMode(std::string_view name) {
  for (const auto& [mode, known] : kModes) {
    if (name == known) return mode;
  }
  return Error(Code::kInvalid, fmt::format("'{}' is not an order", name),
               "it is one of sequential, shard, window, full");
}

Order::Order(std::span<const std::uint64_t> shard_first_rows, const OrderOptions& options)
    : options_(options), first_rows_(shard_first_rows.begin(), shard_first_rows.end()) {
  MUSTER_CHECK(!first_rows_.empty() && options.window > 0);
  if (options.mode == OrderMode::kSequential) return;
  if (options.mode == OrderMode::kFull) {
    shuffles_.emplace_back(rows(), KeyOf(options, Use::kRows, 0));
    return;
  }
  const std::uint64_t count = first_rows_.size() - 1;
  const Permutation permuted(count, KeyOf(options, Use::kShards, 0));
  place_first_.push_back(0);
  for (std::uint64_t place = 0; place < count; ++place) {
    const std::uint64_t shard = permuted(place);
    shards_.push_back(static_cast<std::uint32_t>(shard));
    place_first_.push_back(place_first_.back() + first_rows_[shard + 1] - first_rows_[shard]);
  }
  for (std::size_t first = 0; first < count; first += options.window) {
    const std::size_t last = std::min<std::size_t>(first + options.window, count);
    shuffles_.emplace_back(place_first_[last] - place_first_[first],
                           KeyOf(options, Use::kRows, first / options.window));
  }
}

std::uint64_t Order::At(std::uint64_t position) const {
  MUSTER_CHECK(position < rows());
  switch (options_.mode) {
    case OrderMode::kSequential:
      return position;
    case OrderMode::kFull:
      return shuffles_[0](position);
    case OrderMode::kShard:
    case OrderMode::kWindow:
      return AtShuffledShards(position);
  }
  MUSTER_CHECK(false);
}

std::uint64_t Order::AtShuffledShards(std::uint64_t position) const {
  std::size_t place = PlaceOf(place_first_, position);
  if (options_.mode == OrderMode::kWindow) {
    const std::size_t window = place / options_.window;
    const std::uint64_t begin = place_first_[window * options_.window];
    position = begin + shuffles_[window](position - begin);
    place = PlaceOf(place_first_, position);
  }
  return first_rows_[shards_[place]] + position - place_first_[place];
}

}  // namespace muster::data

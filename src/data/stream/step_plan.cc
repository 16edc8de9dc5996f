#include "data/stream/step_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "data/loader.h"

namespace muster::data {
namespace {

Error Unfit(std::string message) { return Error(Code::kInvalid, std::move(message)); }

std::vector<SlotRange> PlainSplit(const LoaderOptions& options) {
  const std::uint64_t rank = options.rank.value();
  const std::uint64_t share = options.global_batch / options.world;
  const std::uint64_t longer = options.global_batch % options.world;
  return {{.index = options.rank.value(),
           .begin = rank * share + std::min(rank, longer),
           .count = share + (rank < longer ? 1 : 0)}};
}

}  // namespace

Result<std::vector<SlotRange>> SlotsOfRank(const LoaderOptions& options) {
  const std::uint32_t batch = options.global_batch, shards = options.virtual_shards;
  if (options.world == 0 || options.rank.value() >= options.world) {
    return Unfit(fmt::format("rank {} of a world of {}", options.rank.value(), options.world));
  }
  if (batch < options.world) {
    return Unfit(fmt::format("a global batch of {} for {}", batch, Counted(options.world, "rank")));
  }
  if (shards == 0) return PlainSplit(options);
  if (batch % shards != 0) {
    return Unfit(
        fmt::format("a global batch of {} is no multiple of {} virtual shards", batch, shards));
  }
  if (shards % options.world != 0) {
    return Unfit(fmt::format("{} ranks do not divide {} virtual shards", options.world, shards));
  }
  const std::uint32_t mine = shards / options.world;
  std::vector<SlotRange> ranges;
  for (std::uint32_t v = options.rank.value() * mine; v < (options.rank.value() + 1) * mine; ++v) {
    ranges.push_back({v, std::uint64_t{v} * (batch / shards), batch / shards});
  }
  return ranges;
}

std::uint64_t StepsPerEpoch(std::uint64_t rows, const LoaderOptions& options) {
  const std::uint64_t whole = rows / options.global_batch;
  return options.tail == Tail::kPad && rows % options.global_batch != 0 ? whole + 1 : whole;
}

}  // namespace muster::data

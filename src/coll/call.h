#pragma once
// What a rank says it is doing: published in the arena before every collective and compared by
// everyone, so that ranks that disagree get an error that names both sides instead of a hang or
// wrong numbers. Records come from other processes, so every field is treated as hostile.

#include <cstdint>
#include <string>

#include "coll/muster_coll.h"

namespace muster::coll {

enum class Operation : std::uint32_t { kBarrier = 1, kAllReduce, kBroadcast, kAllGather };

inline constexpr std::uint64_t kPrivate = ~std::uint64_t{0};  ///< the buffer is not in the arena
inline constexpr std::size_t kSiteText = 48;

struct CallRecord {
  std::uint64_t sequence;
  std::uint64_t count;
  std::uint64_t site_hash;  ///< FNV-1a of the whole site name
  std::uint64_t buffer;     ///< arena offset or kPrivate; ranks may differ in it
  std::uint32_t operation;
  std::uint32_t type;
  std::uint32_t reduction;
  std::uint32_t root;
  char site[kSiteText];  ///< the start of the site name, NUL-padded
};
static_assert(sizeof(CallRecord) == 96);

struct CallSpec {
  Operation operation = Operation::kBarrier;
  std::uint64_t count = 0;
  muster_coll_type type = MUSTER_COLL_U8;
  muster_coll_op reduction = MUSTER_COLL_SUM;
  std::uint32_t root = 0;
  const char* site = nullptr;
};

CallRecord MakeRecord(const CallSpec& spec, std::uint64_t sequence);
/// Everything but where the buffer lies.
bool SameCall(const CallRecord& a, const CallRecord& b);
/// "all_reduce(f32 × 1024, 'grads')"; says sum, max or min and the root where they matter.
std::string Describe(const CallRecord& record);

/// Bytes of one element, 0 for a type that does not exist.
std::uint64_t SizeOf(muster_coll_type type);

}  // namespace muster::coll

#pragma once
// The arithmetic of a reduction: out[i] = tree over ranks of in[rank][i].
//
// The tree pairs neighbours level by level over the rank index; an odd one out moves up:
// ((r0+r1)+(r2+r3))+r4. Plain adds in that order, never an FMA, 16-bit types accumulated in fp32
// and rounded once, integers wrap. MAX and MIN hand a NaN on. Every instruction set gives the same
// bits, but for the payload of a NaN that a sum made of two.
//
// Pure functions, any thread. Buffers need no alignment; an output may be one of the inputs.

#include <cstddef>
#include <cstdint>

#include "coll/muster_coll.h"

namespace muster::coll {

enum class Isa { kBaseline, kAvx2, kAvx512 };

struct Reduction {
  const std::byte* const* inputs = nullptr;
  std::uint32_t input_count = 0;  ///< 1 … 64, in order of rank
  std::byte* const* outputs = nullptr;
  std::uint32_t output_count = 0;
  std::size_t count = 0;  ///< elements
};

using ReduceKernel = void (*)(const Reduction&);

/// The best this processor runs.
Isa DetectIsa();
/// Null when type or op does not exist.
ReduceKernel FindKernel(muster_coll_type type, muster_coll_op op, Isa isa);

}  // namespace muster::coll

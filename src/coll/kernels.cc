#include "coll/kernels.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/half.h"

#define MUSTER_INLINE [[gnu::always_inline]] inline

namespace muster::coll {
namespace {

constexpr std::size_t kTile = 1024;   // elements; six of them stay in the first-level cache
constexpr std::size_t kMaxDepth = 8;  // log2(64) + 2

// Wire types: how an element is stored and what it is accumulated in.
template <typename T>
struct Plain {
  using Stored = T;
  using Sum = T;
  MUSTER_INLINE static Sum Load(Stored v) { return v; }
  MUSTER_INLINE static Stored Store(Sum v) { return v; }
};
struct Bf16 {
  using Stored = std::uint16_t;
  using Sum = float;
  MUSTER_INLINE static Sum Load(Stored v) { return FloatFromBf16(v); }
  MUSTER_INLINE static Stored Store(Sum v) { return Bf16FromFloat(v); }
};
struct F16 {
  using Stored = std::uint16_t;
  using Sum = float;
  MUSTER_INLINE static Sum Load(Stored v) { return FloatFromF16(v); }
  MUSTER_INLINE static Stored Store(Sum v) { return F16FromFloat(v); }
};

struct Add {
  template <typename T>
  MUSTER_INLINE static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
};
struct Max {
  template <typename T>
  MUSTER_INLINE static T Of(T a, T b) {
    return (a > b || a != a) ? a : b;
  }
};
struct Min {
  template <typename T>
  MUSTER_INLINE static T Of(T a, T b) {
    return (a < b || a != a) ? a : b;
  }
};

template <typename Wire>
MUSTER_INLINE typename Wire::Sum LoadAt(const std::byte* from, std::size_t i) {
  typename Wire::Stored v;
  std::memcpy(&v, from + i * sizeof v, sizeof v);
  return Wire::Load(v);
}

template <typename Wire, typename Op>
MUSTER_INLINE void LoadPair(typename Wire::Sum* __restrict to, const std::byte* a,
                            const std::byte* b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = Op::Of(LoadAt<Wire>(a, i), LoadAt<Wire>(b, i));
}

template <typename Wire>
MUSTER_INLINE void LoadOne(typename Wire::Sum* __restrict to, const std::byte* from,
                           std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = LoadAt<Wire>(from, i);
}

template <typename T, typename Op>
MUSTER_INLINE void Combine(T* __restrict to, const T* __restrict from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = Op::Of(to[i], from[i]);
}

/// Rounds the finished tile once and copies it to every output.
template <typename Wire>
MUSTER_INLINE void StoreTile(const Reduction& task, const typename Wire::Sum* __restrict tile,
                             std::size_t at, std::size_t n) {
  using Stored = typename Wire::Stored;
  alignas(64) Stored rounded[kTile];
  const Stored* from = nullptr;
  if constexpr (std::is_same_v<Stored, typename Wire::Sum>) {
    from = tile;
  } else {
    for (std::size_t i = 0; i < n; ++i) rounded[i] = Wire::Store(tile[i]);
    from = rounded;
  }
  for (std::uint32_t o = 0; o < task.output_count; ++o)
    std::memcpy(task.outputs[o] + at * sizeof(Stored), from, n * sizeof(Stored));
}

/// One tile through the tree. `stack` holds finished subtrees, largest first, as a binary counter
/// over the pairs of ranks does.
template <typename Wire, typename Op>
MUSTER_INLINE void ReduceTile(const Reduction& task, std::size_t at, std::size_t n) {
  using Sum = typename Wire::Sum;
  alignas(64) Sum stack[kMaxDepth][kTile];
  const std::size_t offset = at * sizeof(typename Wire::Stored);
  std::size_t depth = 0;
  for (std::uint32_t rank = 0; rank < task.input_count; rank += 2) {
    if (rank + 1 == task.input_count) {
      LoadOne<Wire>(stack[depth++], task.inputs[rank] + offset, n);
      break;
    }
    LoadPair<Wire, Op>(stack[depth++], task.inputs[rank] + offset, task.inputs[rank + 1] + offset,
                       n);
    for (std::uint32_t pairs = rank / 2 + 1; pairs % 2 == 0; pairs /= 2) {
      --depth;
      Combine<Sum, Op>(stack[depth - 1], stack[depth], n);
    }
  }
  for (; depth > 1; --depth) Combine<Sum, Op>(stack[depth - 2], stack[depth - 1], n);
  StoreTile<Wire>(task, stack[0], at, n);
}

template <typename Wire, typename Op>
MUSTER_INLINE void Reduce(const Reduction& task) {
  for (std::size_t at = 0; at < task.count; at += kTile)
    ReduceTile<Wire, Op>(task, at, std::min(kTile, task.count - at));
}

template <typename Wire, typename Op>
void RunBaseline(const Reduction& task) {
  Reduce<Wire, Op>(task);
}

#if defined(__x86_64__)
template <typename Wire, typename Op>
__attribute__((target("avx2"))) void RunAvx2(const Reduction& task) {
  Reduce<Wire, Op>(task);
}
template <typename Wire, typename Op>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void RunAvx512(
    const Reduction& task) {
  Reduce<Wire, Op>(task);
}
#endif

template <typename Wire, typename Op>
ReduceKernel ForIsa(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return RunAvx512<Wire, Op>;
  if (isa == Isa::kAvx2) return RunAvx2<Wire, Op>;
#endif
  (void)isa;
  return RunBaseline<Wire, Op>;
}

template <typename Wire>
ReduceKernel ForOp(muster_coll_op op, Isa isa) {
  switch (op) {
    case MUSTER_COLL_SUM:
      return ForIsa<Wire, Add>(isa);
    case MUSTER_COLL_MAX:
      return ForIsa<Wire, Max>(isa);
    case MUSTER_COLL_MIN:
      return ForIsa<Wire, Min>(isa);
  }
  return nullptr;
}

}  // namespace

Isa DetectIsa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return Isa::kAvx512;
  if (__builtin_cpu_supports("avx2")) return Isa::kAvx2;
#endif
  return Isa::kBaseline;
}

ReduceKernel FindKernel(muster_coll_type type, muster_coll_op op, Isa isa) {
  switch (type) {
    case MUSTER_COLL_F32:
      return ForOp<Plain<float>>(op, isa);
    case MUSTER_COLL_F64:
      return ForOp<Plain<double>>(op, isa);
    case MUSTER_COLL_BF16:
      return ForOp<Bf16>(op, isa);
    case MUSTER_COLL_F16:
      return ForOp<F16>(op, isa);
    case MUSTER_COLL_I32:
      return ForOp<Plain<std::int32_t>>(op, isa);
    case MUSTER_COLL_I64:
      return ForOp<Plain<std::int64_t>>(op, isa);
    case MUSTER_COLL_U8:
      return ForOp<Plain<std::uint8_t>>(op, isa);
  }
  return nullptr;
}

}  // namespace muster::coll

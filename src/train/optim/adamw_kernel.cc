#include "train/optim/adamw_kernel.h"

#include <immintrin.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "train/sums.h"

namespace muster::train {
namespace {

// One element; the vector versions below are this, eight or sixteen at a time.
[[gnu::always_inline]] inline void UpdateElement(const AdamWStep& s, const AdamWBuffers& b,
                                                 std::size_t i) {
  const float g = b.gradient[i] * s.gradient_scale;
  const float m = std::fma(g - b.moment1[i], s.one_minus_beta1, b.moment1[i]);
  const float v = std::fma(g * g, s.one_minus_beta2, s.beta2 * b.moment2[i]);
  const float divisor = std::fma(std::sqrt(v), s.inverse_root_bias2, s.epsilon);
  b.parameter[i] = std::fma(-s.step_size, m / divisor, b.parameter[i] * s.keep);
  b.moment1[i] = m;
  b.moment2[i] = v;
}

void UpdateScalar(const AdamWStep& s, const AdamWBuffers& b) {
  for (std::size_t i = 0; i < b.length; ++i) UpdateElement(s, b, i);
}

[[gnu::target("avx2,fma")]] void UpdateAvx2(const AdamWStep& s, const AdamWBuffers& b) {
  std::size_t i = 0;
  for (; i + 8 <= b.length; i += 8) {
    const __m256 g =
        _mm256_mul_ps(_mm256_loadu_ps(b.gradient + i), _mm256_set1_ps(s.gradient_scale));
    __m256 m = _mm256_loadu_ps(b.moment1 + i);
    m = _mm256_fmadd_ps(_mm256_sub_ps(g, m), _mm256_set1_ps(s.one_minus_beta1), m);
    __m256 v = _mm256_mul_ps(_mm256_set1_ps(s.beta2), _mm256_loadu_ps(b.moment2 + i));
    v = _mm256_fmadd_ps(_mm256_mul_ps(g, g), _mm256_set1_ps(s.one_minus_beta2), v);
    const __m256 divisor = _mm256_fmadd_ps(_mm256_sqrt_ps(v), _mm256_set1_ps(s.inverse_root_bias2),
                                           _mm256_set1_ps(s.epsilon));
    __m256 p = _mm256_mul_ps(_mm256_loadu_ps(b.parameter + i), _mm256_set1_ps(s.keep));
    p = _mm256_fmadd_ps(_mm256_set1_ps(-s.step_size), _mm256_div_ps(m, divisor), p);
    _mm256_storeu_ps(b.parameter + i, p);
    _mm256_storeu_ps(b.moment1 + i, m);
    _mm256_storeu_ps(b.moment2 + i, v);
  }
  for (; i < b.length; ++i) UpdateElement(s, b, i);
}

[[gnu::target("avx512f,fma")]] void UpdateAvx512(const AdamWStep& s, const AdamWBuffers& b) {
  for (std::size_t i = 0; i < b.length; i += 16) {
    const std::size_t left = b.length - i;
    const auto lanes = static_cast<__mmask16>(left >= 16 ? 0xFFFFU : (1U << left) - 1);
    const __m512 g = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, b.gradient + i),
                                   _mm512_set1_ps(s.gradient_scale));
    __m512 m = _mm512_maskz_loadu_ps(lanes, b.moment1 + i);
    m = _mm512_fmadd_ps(_mm512_sub_ps(g, m), _mm512_set1_ps(s.one_minus_beta1), m);
    __m512 v = _mm512_mul_ps(_mm512_set1_ps(s.beta2), _mm512_maskz_loadu_ps(lanes, b.moment2 + i));
    v = _mm512_fmadd_ps(_mm512_mul_ps(g, g), _mm512_set1_ps(s.one_minus_beta2), v);
    const __m512 divisor = _mm512_fmadd_ps(_mm512_sqrt_ps(v), _mm512_set1_ps(s.inverse_root_bias2),
                                           _mm512_set1_ps(s.epsilon));
    __m512 p = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, b.parameter + i), _mm512_set1_ps(s.keep));
    p = _mm512_fmadd_ps(_mm512_set1_ps(-s.step_size), _mm512_div_ps(m, divisor), p);
    _mm512_mask_storeu_ps(b.parameter + i, lanes, p);
    _mm512_mask_storeu_ps(b.moment1 + i, lanes, m);
    _mm512_mask_storeu_ps(b.moment2 + i, lanes, v);
  }
}

constexpr std::size_t kLanes = 8;
constexpr std::size_t kBlock = 4096;
using Lanes = std::array<double, kLanes>;

// The square of a float is exact in fp64, so only the additions round, and their order is fixed:
// lane i takes the elements i, i + 8, i + 16, ….
void SquaresScalar(std::span<const float> x, Lanes& lanes) {
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % kLanes] += double{x[i]} * double{x[i]};
}

[[gnu::target("avx2,fma")]] void SquaresAvx2(std::span<const float> x, Lanes& lanes) {
  __m256d low = _mm256_loadu_pd(lanes.data());
  __m256d high = _mm256_loadu_pd(lanes.data() + 4);
  std::size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    const __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x.data() + i));
    const __m256d b = _mm256_cvtps_pd(_mm_loadu_ps(x.data() + i + 4));
    low = _mm256_fmadd_pd(a, a, low);
    high = _mm256_fmadd_pd(b, b, high);
  }
  _mm256_storeu_pd(lanes.data(), low);
  _mm256_storeu_pd(lanes.data() + 4, high);
  SquaresScalar(x.subspan(i), lanes);
}

[[gnu::target("avx512f,fma")]] void SquaresAvx512(std::span<const float> x, Lanes& lanes) {
  __m512d sum = _mm512_loadu_pd(lanes.data());
  std::size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    const __m512d a = _mm512_cvtps_pd(_mm256_loadu_ps(x.data() + i));
    sum = _mm512_fmadd_pd(a, a, sum);
  }
  _mm512_storeu_pd(lanes.data(), sum);
  SquaresScalar(x.subspan(i), lanes);
}

double BlockSquares(std::span<const float> block, Instructions instructions) {
  Lanes lanes{};
  switch (instructions) {
    case Instructions::kScalar:
      SquaresScalar(block, lanes);
      break;
    case Instructions::kAvx2:
      SquaresAvx2(block, lanes);
      break;
    case Instructions::kAvx512:
      SquaresAvx512(block, lanes);
      break;
  }
  return TreeSum(lanes);
}

}  // namespace

Instructions BestInstructions() {
  if (__builtin_cpu_supports("avx512f")) return Instructions::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Instructions::kAvx2;
  return Instructions::kScalar;
}

void UpdateAdamW(const AdamWStep& step, const AdamWBuffers& buffers, Instructions instructions) {
  switch (instructions) {
    case Instructions::kScalar:
      return UpdateScalar(step, buffers);
    case Instructions::kAvx2:
      return UpdateAvx2(step, buffers);
    case Instructions::kAvx512:
      return UpdateAvx512(step, buffers);
  }
}

double SumOfSquares(std::span<const float> values, Instructions instructions) {
  std::vector<double> blocks;
  blocks.reserve(values.size() / kBlock + 1);
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::size_t length = std::min(kBlock, values.size() - begin);
    blocks.push_back(BlockSquares(values.subspan(begin, length), instructions));
  }
  return TreeSum(blocks);
}

}  // namespace muster::train

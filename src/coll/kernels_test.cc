#include "coll/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "coll/call.h"
#include "coll/ranks_test.h"

namespace muster::coll {
namespace {

using Bytes = std::vector<std::byte>;

Bytes RunKernel(muster_coll_type type, muster_coll_op op, Isa isa, std::vector<Bytes> inputs,
                std::size_t count) {
  std::vector<const std::byte*> in;
  for (const Bytes& bytes : inputs) in.push_back(bytes.data());
  Bytes out(count * SizeOf(type));
  std::byte* to = out.data();
  FindKernel(type, op, isa)({.inputs = in.data(),
                             .input_count = static_cast<std::uint32_t>(in.size()),
                             .outputs = &to,
                             .output_count = 1,
                             .count = count});
  return out;
}

/// Bytes that are numbers of the type, without NaN.
Bytes RandomInput(muster_coll_type type, std::uint64_t seed, std::uint32_t rank, std::size_t n) {
  Bytes bytes(n * SizeOf(type));
  for (std::size_t i = 0; i < n; ++i) {
    const float f = ValueOf(seed, rank, i);
    const double d = f * (1 + 0x1p-40);
    const std::uint64_t integer = Mix(seed, rank, i, 1);
    const std::uint16_t bf16 = Bf16FromFloat(f);
    const std::uint16_t f16 = F16FromFloat(f);
    const void* from = &integer;
    if (type == MUSTER_COLL_F32) from = &f;
    if (type == MUSTER_COLL_F64) from = &d;
    if (type == MUSTER_COLL_BF16) from = &bf16;
    if (type == MUSTER_COLL_F16) from = &f16;
    std::memcpy(bytes.data() + i * SizeOf(type), from, SizeOf(type));
  }
  return bytes;
}

std::vector<Isa> IsasHere() {
  std::vector<Isa> isas = {Isa::kBaseline};
  if (DetectIsa() >= Isa::kAvx2) isas.push_back(Isa::kAvx2);
  if (DetectIsa() >= Isa::kAvx512) isas.push_back(Isa::kAvx512);
  return isas;
}

TEST(Kernels, GiveTheSameBitsWithEveryInstructionSet) {
  for (int type = MUSTER_COLL_F32; type <= MUSTER_COLL_U8; ++type) {
    for (int op = MUSTER_COLL_SUM; op <= MUSTER_COLL_MIN; ++op) {
      for (const std::uint32_t world : {1u, 2u, 3u, 5u, 8u, 13u, 64u}) {
        const auto t = static_cast<muster_coll_type>(type);
        const auto o = static_cast<muster_coll_op>(op);
        constexpr std::size_t kCount = 2048 + 37;
        std::vector<Bytes> inputs;
        for (std::uint32_t r = 0; r < world; ++r) inputs.push_back(RandomInput(t, 7, r, kCount));
        const Bytes expected = RunKernel(t, o, Isa::kBaseline, inputs, kCount);
        for (const Isa isa : IsasHere())
          EXPECT_EQ(RunKernel(t, o, isa, inputs, kCount), expected) << type << op << world;
      }
    }
  }
}

TEST(Kernels, SumInTheOrderOfTheTree) {
  for (std::uint32_t world = 1; world <= 64; ++world) {
    std::vector<Bytes> inputs;
    for (std::uint32_t r = 0; r < world; ++r)
      inputs.push_back(RandomInput(MUSTER_COLL_F32, 3, r, 100));
    const Bytes sum =
        RunKernel(MUSTER_COLL_F32, MUSTER_COLL_SUM, DetectIsa(), std::move(inputs), 100);
    const std::vector<float> expected = ExpectedSum(3, world, 100);
    EXPECT_EQ(std::memcmp(sum.data(), expected.data(), sum.size()), 0) << world;
  }
}

TEST(Kernels, AccumulateSixteenBitTypesInSinglePrecision) {
  // 256 + 1 is not a bf16; eight of them added one by one in bf16 would stay at 256.
  std::vector<std::uint16_t> values = {Bf16FromFloat(256)};
  for (int i = 0; i < 8; ++i) values.push_back(Bf16FromFloat(1));
  std::vector<Bytes> inputs;
  for (const std::uint16_t& value : values) {
    inputs.emplace_back(2);
    std::memcpy(inputs.back().data(), &value, 2);
  }
  const Bytes sum = RunKernel(MUSTER_COLL_BF16, MUSTER_COLL_SUM, DetectIsa(), inputs, 1);
  std::uint16_t result = 0;
  std::memcpy(&result, sum.data(), 2);
  EXPECT_EQ(FloatFromBf16(result), 264.0f);
}

TEST(Kernels, HandNanOnInMaxAndMin) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto op : {MUSTER_COLL_MAX, MUSTER_COLL_MIN}) {
    for (const std::array<float, 2> pair : {std::array{nan, 1.0f}, std::array{1.0f, nan}}) {
      std::vector<Bytes> inputs(2, Bytes(4));
      std::memcpy(inputs[0].data(), &pair[0], 4);
      std::memcpy(inputs[1].data(), &pair[1], 4);
      const Bytes out = RunKernel(MUSTER_COLL_F32, op, DetectIsa(), inputs, 1);
      float result = 0;
      std::memcpy(&result, out.data(), 4);
      EXPECT_TRUE(std::isnan(result));
    }
  }
}

TEST(Kernels, WorkInPlaceAtAnyAlignment) {
  for (std::size_t shift = 0; shift < 5; ++shift) {
    const Bytes a = RandomInput(MUSTER_COLL_F32, 1, 0, 3000);
    const Bytes b = RandomInput(MUSTER_COLL_F32, 1, 1, 3000);
    Bytes mine(a.size() + shift);
    std::memcpy(mine.data() + shift, a.data(), a.size());
    const std::array<const std::byte*, 2> in = {mine.data() + shift, b.data()};
    std::byte* out = mine.data() + shift;
    FindKernel(MUSTER_COLL_F32, MUSTER_COLL_SUM, DetectIsa())(
        {.inputs = in.data(), .input_count = 2, .outputs = &out, .output_count = 1, .count = 3000});
    const std::vector<float> expected = ExpectedSum(1, 2, 3000);
    EXPECT_EQ(std::memcmp(out, expected.data(), a.size()), 0);
  }
}

}  // namespace
}  // namespace muster::coll

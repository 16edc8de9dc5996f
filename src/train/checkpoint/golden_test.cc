// Version 1 as bytes: what is written today is what tests/golden/checkpoint holds, and what lies
// there is readable for good. tests/interop/test_checkpoint.py reads the same with its own reader.
#include <gtest/gtest.h>

#include <filesystem>

#include "train/checkpoint/digest.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/sample_test.h"

namespace muster::checkpoint {
namespace {

const std::string kGolden = std::string(MUSTER_GOLDEN) + "/step-000000000003";
constexpr std::string_view kDigest =
    "d2f00d45e1c1240c67eff362b62c4b83227b3f3517226d5037e4bba0122dc3b5";

/// w[i] = i / 2, b = −1; the moments are squares. Two ranks cut inside w.
SaveRequest GoldenRequest(const std::string& folder, Rank rank,
                          const std::vector<float>& parameters,
                          const std::vector<double>& moments) {
  SaveRequest request{.folder = folder, .rank = rank};
  request.manifest = {
      .step = 3,
      .generation = Generation(2),
      .world = 2,
      .model = "golden",
      .config_json = R"({"width": 3})",
      .index = {.length = 12,
                .entries = {{.name = "w", .shape = {2, 3}, .offset = 0, .length = 6},
                            {.name = "b", .shape = {}, .offset = 8, .length = 1}},
                .groups = {{"param", DType::kF32}, {"exp_avg_sq", DType::kF64}}},
      .loader_state = R"({"samples":384})",
      .random_key = 0xffff'ffff'ffff'fff7,
      .optimizer_step = 3,
      .canonical = {.enabled = true, .virtual_shards = 8},
      .environment = {{"torch", "2.13.0"}},
      .created_utc = "2026-11-29T22:00:00.000Z"};
  const std::size_t begin = rank == Rank(0) ? 0 : 4;
  const std::size_t end = rank == Rank(0) ? 4 : 12;
  request.slices = {{.group = "param",
                     .begin = begin,
                     .data = std::as_bytes(std::span(parameters).subspan(begin, end - begin))},
                    {.group = "exp_avg_sq",
                     .begin = begin,
                     .data = std::as_bytes(std::span(moments).subspan(begin, end - begin))}};
  return request;
}

void SaveGolden(const std::string& folder) {
  std::vector<float> parameters(12);
  std::vector<double> moments(12);
  for (std::size_t i = 0; i < 6; ++i) parameters[i] = static_cast<float>(i) / 2;
  parameters[8] = -1;
  for (std::size_t i = 0; i < 12; ++i) moments[i] = double{parameters[i]} * parameters[i];
  ThreadAgreement agreement(2);
  std::thread other([&] {
    EXPECT_TRUE(Save(PosixFiles(), agreement, GoldenRequest(folder, Rank(1), parameters, moments)));
  });
  EXPECT_TRUE(Save(PosixFiles(), agreement, GoldenRequest(folder, Rank(0), parameters, moments)));
  other.join();
}

TEST(Golden, IsWrittenByteForByte) {
  const TemporaryFolder folder;
  SaveGolden(folder.path());
  const std::string path = folder / "step-000000000003";
  const auto names = PosixFiles().List(kGolden);
  ASSERT_TRUE(names) << names.error().message();
  EXPECT_EQ(*names, *PosixFiles().List(path));
  for (const std::string& name : *names)
    EXPECT_EQ(*PosixFiles().ReadAll(path + "/" + name, 1_MiB),
              *PosixFiles().ReadAll(kGolden + "/" + name, 1_MiB))
        << name;
}

TEST(Golden, IsReadWithItsDigest) {
  auto checkpoint = Checkpoint::Open(PosixFiles(), kGolden);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_TRUE(checkpoint->Verify()->damage.empty());
  EXPECT_EQ(*Digest(*checkpoint, kAllGroups), kDigest);
  std::vector<float> w(6);
  ASSERT_TRUE(checkpoint->ReadTensor("param", "w", std::as_writable_bytes(std::span(w))));
  EXPECT_EQ(w, (std::vector<float>{0, 0.5, 1, 1.5, 2, 2.5}));
}

TEST(Golden, IsExportedAsPlainSafetensors) {
  const TemporaryFolder folder;
  auto checkpoint = Checkpoint::Open(PosixFiles(), kGolden);
  ASSERT_TRUE(checkpoint);
  ASSERT_TRUE(Export(*checkpoint, PosixFiles(), "param", folder / "out.safetensors"));
  EXPECT_EQ(*PosixFiles().List(folder.path()), std::vector<std::string>{"out.safetensors"});
  EXPECT_EQ(Export(*checkpoint, PosixFiles(), "param", folder / "out.safetensors").error().code(),
            Code::kAlreadyExists);
  EXPECT_EQ(Export(*checkpoint, PosixFiles(), "none", folder / "x").error().code(),
            Code::kNotFound);
  const auto bytes = PosixFiles().ReadAll(folder / "out.safetensors", 1_MiB);
  float last = 0;
  std::memcpy(&last, bytes->data() + bytes->size() - 4, 4);
  EXPECT_EQ(last, 2.5f);
}

}  // namespace
}  // namespace muster::checkpoint

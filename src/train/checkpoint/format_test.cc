// Byte formats: checksums, safetensors, names, manifest; golden vectors and hostile input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "train/checkpoint/block_sums.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/safetensors.h"
#include "train/checkpoint/sample_test.h"

namespace muster::checkpoint {
namespace {

using ::testing::HasSubstr;

TEST(BlockSums, SumsBlocksOfAStreamHoweverItIsCut) {
  std::string data(kBlockBytes * 2 + 5, 'x');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(Mix(1, i / 64));
  BlockSums sums;
  for (std::size_t at = 0; at < data.size(); at += 1'000'003)
    sums.Add(AsBytes(std::string_view(data).substr(at, 1'000'003)));
  const std::vector<std::uint32_t> expected = {
      Crc32c(AsBytes(std::string_view(data).substr(0, kBlockBytes))),
      Crc32c(AsBytes(std::string_view(data).substr(kBlockBytes, kBlockBytes))),
      Crc32c(AsBytes(std::string_view(data).substr(2 * kBlockBytes)))};
  EXPECT_EQ(sums.Finish(), expected);
}

// The layout by hand from the specification; tests/interop reads the same with another reader.
TEST(Safetensors, WritesTheGoldenHeader) {
  const auto header = BuildSafetensors(
      {{.name = "w", .dtype = DType::kF32, .shape = {2, 3}, .begin = 0, .end = 24}}, {{"k", "v"}});
  ASSERT_TRUE(header);
  const std::string json =
      R"({"__metadata__":{"k":"v"},"w":{"data_offsets":[0,24],"dtype":"F32","shape":[2,3]}})";
  const std::string padded = json + std::string(128 - 8 - json.size(), ' ');
  EXPECT_EQ(*header, std::string("\x78\0\0\0\0\0\0\0", 8) + padded);
  const auto parsed = ParseSafetensors(padded, 24);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->entries.at(0).shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(parsed->metadata.at("k"), "v");
}

TEST(Safetensors, RefusesHostileHeaders) {
  const auto failure = [](const std::string& json, std::uint64_t bytes) {
    const auto parsed = ParseSafetensors(json, bytes);
    return parsed ? std::string("parsed") : parsed.error().message();
  };
  EXPECT_THAT(failure("", 0), HasSubstr("breaks"));
  EXPECT_THAT(failure("[]", 0), HasSubstr("not an object"));
  EXPECT_THAT(failure(std::string(100, '['), 0), HasSubstr("deeper"));
  EXPECT_THAT(failure(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})", 9),
              HasSubstr("do not fit"));
  EXPECT_THAT(failure(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8),
              HasSubstr("do not fit"));
  EXPECT_THAT(failure(R"({"w":{"dtype":"Q7","shape":[2],"data_offsets":[0,8]}})", 8),
              HasSubstr("'Q7'"));
  EXPECT_THAT(
      failure(R"({"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0),
      HasSubstr("do not fit"));
  EXPECT_THAT(failure(R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8),
              HasSubstr("list of sizes"));
  EXPECT_THAT(failure(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},
                          "b":{"dtype":"U8","shape":[8],"data_offsets":[4,12]}})",
                      12),
              HasSubstr("begins at byte 4 where 8"));
  EXPECT_THAT(failure(R"({"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 9),
              HasSubstr("file holds 9"));
}

TEST(FolderNames, RoundTripAndRefuseOthers) {
  EXPECT_EQ(StepName(100), "step-000000000100");
  EXPECT_EQ(TemporaryName(100, Generation(3)), "step-000000000100.g3.tmp");
  EXPECT_EQ(RankFileName(Rank(1), 8), "rank-00001-of-00008.safetensors");
  EXPECT_EQ(ParseStepName("step-000000000100"), 100u);
  EXPECT_EQ(TemporaryName(100, Generation(3), "ab_9"), "step-000000000100.ab_9.g3.tmp");
  for (const char* name :
       {"step-000000000100.g18446744073709551615.tmp", "step-000000000100.ab_9.g3.tmp",
        "step-000000000100.g3.g4.tmp", "step-000000000100.p123.g1.tmp"})
    EXPECT_TRUE(IsTemporaryName(name)) << name;
  EXPECT_EQ(RunTag("my run/../x"), "my_run____x");
  EXPECT_EQ(RunTag(std::string(100, 'a')).size(), 64u);
  for (const char* name : {"step-100", "step-000000000100.g3.tmp", "step-00000000010x", "step-",
                           "xstep-000000000100", "step-+00000000100"})
    EXPECT_FALSE(ParseStepName(name)) << name;
  for (const char* name :
       {"step-000000000100.tmp", "step-000000000100.g.tmp", "latest.tmp",
        "step-000000000100.g-1.tmp", "step-000000000100.g99999999999999999999.tmp",
        "step-000000000100..g1.tmp", "step-000000000100.a.b.g1.tmp", "step-100.g1.tmp", "",
        "step-000000000100.a/b.g1.tmp", "step-000000000100", ".g1.tmp"})
    EXPECT_FALSE(IsTemporaryName(name)) << name;
}

Manifest SampleManifest() {
  const Sample sample(1, 16);
  Manifest manifest = sample.Request("", 7, Rank(0), 1).manifest;
  StoredFile file{.name = RankFileName(Rank(0), 1), .header_bytes = 64};
  for (const Group& group : manifest.index.groups) {
    file.slices.push_back({.group = group.name,
                           .begin = 0,
                           .length = manifest.index.length,
                           .data_offset = file.data_bytes});
    file.data_bytes += manifest.index.length * SizeOf(group.dtype);
  }
  file.crc32c.resize(BlocksOf(file.data_bytes));
  manifest.files = {file};
  return manifest;
}

TEST(Manifest, RoundTrips) {
  const Manifest manifest = SampleManifest();
  const auto parsed = ParseManifest(*WriteManifest(manifest));
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->files, manifest.files);
  EXPECT_EQ(parsed->index.length, manifest.index.length);
  EXPECT_EQ(parsed->index.groups, manifest.index.groups);
  EXPECT_THAT(parsed->index.entries, ::testing::UnorderedElementsAreArray(manifest.index.entries));
  EXPECT_EQ(parsed->random_key, manifest.random_key);
  EXPECT_EQ(parsed->loader_state, manifest.loader_state);
  EXPECT_EQ(parsed->canonical, manifest.canonical);
  EXPECT_EQ(parsed->environment, manifest.environment);
  EXPECT_EQ(parsed->config_json, R"({"width":64})");
}

/// Every field, removed or replaced by things it is not: an error, never a crash or a success that
/// means something else.
TEST(Manifest, RefusesEveryFieldOfAnotherKind) {
  const auto good = nlohmann::json::parse(*WriteManifest(SampleManifest()));
  const std::vector<nlohmann::json> foreign = {
      nullptr, -1, 1.5, "x", nlohmann::json::array({-1}), {{"a", nullptr}}, 18446744073709551615u};
  for (const auto& [key, value] : good.items()) {
    auto without = good;
    without.erase(key);
    EXPECT_FALSE(ParseManifest(without.dump())) << key;
    for (const auto& other : foreign) {
      const bool fits = other.type_name() == value.type_name() &&
                        other.is_number() == other.is_number_unsigned() &&
                        (key == "random_key" || key == "generation" || key == "model" ||
                         key == "loader_state" || key == "created_utc" || key == "config");
      auto changed = good;
      changed[key] = other;
      EXPECT_EQ(ParseManifest(changed.dump()).has_value(), fits) << key << " = " << other;
    }
  }
}

std::string FailureOf(const nlohmann::json& document) {
  const auto parsed = ParseManifest(document.dump());
  return parsed ? "parsed" : parsed.error().message();
}

TEST(Manifest, RefusesRangesThatLeaveTheFileOrTheSpace) {
  const auto good = nlohmann::json::parse(*WriteManifest(SampleManifest()));
  const auto changed = [&](const char* pointer, const nlohmann::json& value) {
    auto document = good;
    document[nlohmann::json::json_pointer(pointer)] = value;
    return FailureOf(document);
  };
  EXPECT_EQ(FailureOf(good), "parsed");
  EXPECT_THAT(changed("/files/0/slices/0/begin", 1),
              HasSubstr("leaves the file or the flat space"));
  EXPECT_THAT(changed("/files/0/slices/0/length", std::uint64_t{1} << 61),
              HasSubstr("leaves the file or the flat space"));
  EXPECT_THAT(changed("/files/0/slices/0/length", 5), HasSubstr("not stored completely"));
  EXPECT_THAT(changed("/files/0/slices/0/data_offset", std::uint64_t{1} << 61),
              HasSubstr("leaves the file or the flat space"));
  EXPECT_THAT(changed("/files/0/slices/1/group", "param"), HasSubstr("stored twice"));
  EXPECT_THAT(changed("/files/0/slices/1/group", "other"), HasSubstr("unknown group"));
  EXPECT_THAT(changed("/files/0/name", "../../etc/passwd"), HasSubstr("leaves the folder"));
  EXPECT_THAT(changed("/files/0/data_bytes", std::uint64_t{1} << 60), HasSubstr("checksums for"));
  EXPECT_THAT(changed("/files/0/crc32c", nlohmann::json::array()), HasSubstr("0 checksums"));
  EXPECT_THAT(changed("/index/tensors/scale/offset", 0), HasSubstr("overlaps"));
  EXPECT_THAT(changed("/index/tensors/scale/length", 2), HasSubstr("unlike its shape"));
  EXPECT_THAT(changed("/index/tensors/scale/offset", 1u << 30), HasSubstr("leaves the flat space"));
  EXPECT_THAT(changed("/index/groups/0/name", "weights"), HasSubstr("no group 'param'"));
  EXPECT_THAT(changed("/format", "muster-checkpoint/2"), HasSubstr("this program reads"));
}

TEST(Manifest, TellsANewerVersionFromDamage) {
  auto document = nlohmann::json::parse(*WriteManifest(SampleManifest()));
  document["format"] = "muster-checkpoint/2";
  const auto parsed = ParseManifest(document.dump());
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code(), Code::kPrecondition);
  EXPECT_THAT(parsed.error().hint(), HasSubstr("newer"));
}

TEST(RequireSame, NamesTheFirstDifference) {
  const Manifest manifest = SampleManifest();
  const auto failure = [&](const std::string& model, const FlatIndex& index) {
    const Status status = RequireSame(manifest, model, index);
    return status ? std::string() : status.error().message();
  };
  EXPECT_EQ(failure("sample", SampleIndex(64)), "");
  EXPECT_EQ(failure("vit", SampleIndex(16)), "the checkpoint is of model 'sample', not 'vit'");
  FlatIndex other = SampleIndex(16);
  other.entries[0].shape = {7, 50};
  EXPECT_EQ(failure("sample", other),
            "tensor 'embed.weight' has shape [50, 7] in the checkpoint and [7, 50] in the model");
  other = SampleIndex(16);
  other.entries[0].name = "wte";
  EXPECT_EQ(failure("sample", other), "the checkpoint lacks tensor 'wte' of the model");
  other = SampleIndex(16);
  other.entries.pop_back();
  EXPECT_EQ(failure("sample", other), "the checkpoint has tensor 'empty', which the model lacks");
  other = SampleIndex(16);
  other.groups[1].dtype = DType::kF32;
  EXPECT_EQ(failure("sample", other),
            "group 'exp_avg' is F64 in the checkpoint and F32 in the model");
}

}  // namespace
}  // namespace muster::checkpoint

#include "data/layout/manifest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include "base/crc32c.h"

#include "data/layout/hf_json.h"
#include "data/layout/little_endian.h"
#include "data/layout/row_index.h"

namespace muster::data {
namespace {

Manifest SampleManifest() {
  Manifest manifest{.main_column = "image.bytes"};
  ShardEntry shard{.name = "data-00000-of-00001.arrow", .bytes = 20'000, .rows = 3};
  shard.digest.fill(7);
  shard.part_crcs = {1};
  shard.batches = {{{512, 3584, 4096, 2}, 11, 12}, {{8192, 4096, 64, 1}, 13, 14}};
  manifest.shards.push_back(shard);
  return manifest;
}

TEST(StreamDigest, GivesTheKnownAnswer) {
  StreamDigest digest;  // XXH3-128 of nothing, seed 0: xxHash's own sanity test
  EXPECT_EQ(DatasetId{digest.Finish()}.Hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(Manifest, RoundTrips) {
  const auto bytes = EncodeManifest(SampleManifest());
  const auto back = DecodeManifest(bytes);
  ASSERT_TRUE(back) << back.error().ToString();
  EXPECT_EQ(EncodeManifest(*back), bytes);
  EXPECT_EQ(back->shards[0].batches[1].frame.rows, 1u);
  EXPECT_EQ(back->Id(), SampleManifest().Id());
}

TEST(Manifest, KeepsItsBytesForEver) {
  // A change here is a new format version.
  EXPECT_EQ(Crc32c(EncodeManifest(SampleManifest())), 2881273743u);
  EXPECT_EQ(SampleManifest().Id().Hex(), "97ee2641991b0acd10758631462fd6ea");
}

TEST(Manifest, EveryFlippedBitAndEveryCutIsFound) {
  const auto bytes = EncodeManifest(SampleManifest());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto flipped = bytes;
    flipped[at] ^= std::byte{0x10};
    ASSERT_FALSE(DecodeManifest(flipped)) << at;
    ASSERT_FALSE(DecodeManifest(ByteSpan(bytes).first(at))) << at;
  }
}

TEST(Manifest, RefusesWhatItsChecksumCannotFind) {
  const auto error_of = [](const Manifest& manifest) {
    const auto decoded = DecodeManifest(EncodeManifest(manifest));
    return decoded ? std::string("no error") : decoded.error().message();
  };
  Manifest outside = SampleManifest();
  outside.shards[0].batches[1].frame.body_length = 1ull << 63;
  EXPECT_NE(error_of(outside).find("does not fit"), std::string::npos);
  Manifest overlap = SampleManifest();
  overlap.shards[0].batches[1].frame.offset = 600;
  EXPECT_NE(error_of(overlap).find("does not fit"), std::string::npos);
  Manifest leaving = SampleManifest();
  leaving.shards[0].name = "../../etc/passwd";
  EXPECT_NE(error_of(leaving).find("leaves the folder"), std::string::npos);
  Manifest rows = SampleManifest();
  rows.shards[0].rows = 4;
  EXPECT_NE(error_of(rows).find("3 rows in the batches, 4 recorded"), std::string::npos);
}

/// With `bytes` at `at`, and the checksum that belongs to that.
std::vector<std::byte> Changed(std::size_t at, const std::vector<std::byte>& bytes) {
  auto manifest = EncodeManifest(SampleManifest());
  manifest.resize(std::max(manifest.size(), at + bytes.size()));
  std::ranges::copy(bytes, manifest.begin() + static_cast<std::ptrdiff_t>(at));
  std::vector<std::byte> crc(4);
  std::ranges::copy(crc, manifest.begin() + 52);
  crc.clear();
  Put(crc, Crc32c(manifest));
  std::ranges::copy(crc, manifest.begin() + 52);
  return manifest;
}

template <typename T>
std::string ErrorWith(std::size_t at, T value) {
  std::vector<std::byte> bytes;
  Put(bytes, value);
  const auto decoded = DecodeManifest(Changed(at, bytes));
  if (decoded) return "no error";
  EXPECT_EQ(decoded.error().code(), Code::kDataLoss);
  return decoded.error().message();
}

TEST(Manifest, HoldsEveryCountAgainstTheOthersAndTheSize) {
  const auto says = [](const std::string& error, std::string_view what) {
    return error.find(what) != std::string::npos ? testing::AssertionSuccess()
                                                 : testing::AssertionFailure() << error;
  };
  const std::uint32_t most = ~0u;
  ASSERT_TRUE(DecodeManifest(Changed(0, {})));
  EXPECT_TRUE(says(ErrorWith(0, std::uint8_t{'m'}), "another magic"));
  EXPECT_TRUE(says(ErrorWith(12, most), "ends too early"));  // shards
  EXPECT_TRUE(says(ErrorWith(12, 0u), "counts do not add up"));
  EXPECT_TRUE(says(ErrorWith(16, std::uint64_t{4}), "counts do not add up"));  // rows
  EXPECT_TRUE(says(ErrorWith(24, std::uint8_t{0}), "dataset id"));
  EXPECT_TRUE(says(ErrorWith(40, std::uint64_t{1}), "part size"));
  EXPECT_TRUE(says(ErrorWith(48, 1u), "part size"));
  EXPECT_TRUE(says(ErrorWith(56, 1025u), "ends too early"));  // main column's name
  EXPECT_TRUE(says(ErrorWith(71, 256u), "ends too early"));   // shard's name
  EXPECT_TRUE(says(ErrorWith(75, std::uint8_t{'/'}), "leaves the folder"));
  EXPECT_TRUE(says(ErrorWith(100, std::uint64_t{9'000'000}), "1 part checksums for 9000000"));
  EXPECT_TRUE(says(ErrorWith(132, most), "ends too early"));  // parts
  EXPECT_TRUE(says(ErrorWith(136, most), "ends too early"));  // batches
  const std::size_t end = EncodeManifest(SampleManifest()).size();
  EXPECT_TRUE(says(ErrorWith(end, std::uint8_t{0}), "counts do not add up"));
}

TEST(Manifest, RowsOfAllShardsFitIntoTheirNumber) {
  Manifest manifest = SampleManifest();
  ShardEntry& shard = manifest.shards[0];
  shard.rows = 1ull << 63;
  shard.batches.resize(1);
  shard.batches[0].frame.rows = shard.rows;
  EXPECT_TRUE(DecodeManifest(EncodeManifest(manifest)));
  manifest.shards.push_back(shard);
  const auto decoded = DecodeManifest(EncodeManifest(manifest));
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().message().find("row counts"), std::string::npos);
}

TEST(Manifest, OfALaterVersionAsksForALaterProgram) {
  std::vector<std::byte> two;
  Put(two, 2u);
  std::vector<std::byte> later = Changed(8, two);
  const auto decoded = DecodeManifest(later);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::kPrecondition);
  // Nothing but its version: the checksum tells that it was one of ours.
  later = EncodeManifest(SampleManifest());
  later[8] ^= std::byte{4};
  const auto flipped = DecodeManifest(later);
  ASSERT_FALSE(flipped);
  EXPECT_EQ(flipped.error().code(), Code::kDataLoss);
  EXPECT_NE(flipped.error().message().find("says version 5"), std::string::npos);
}

TEST(RowIndex, RefusesAnotherKindOfFileAndALaterVersion) {
  const auto code_of = [](std::size_t at, std::uint8_t value) {
    auto file = EncodeRowIndexHeader(0);
    file[at] = std::byte{value};
    const auto entries = RowEntries(file, 0);
    return entries ? Code::kBug : entries.error().code();
  };
  EXPECT_EQ(code_of(0, 'm'), Code::kDataLoss);
  EXPECT_EQ(code_of(8, 2), Code::kDataLoss) << "it would come with a later manifest";
  EXPECT_EQ(code_of(12, 13), Code::kDataLoss);
  EXPECT_EQ(code_of(16, 1), Code::kDataLoss);
}

TEST(RowIndex, RoundTripsAndChecksItsSize) {
  auto file = EncodeRowIndexHeader(2);
  AppendRowEntry(file, {1, 2, 3});
  AppendRowEntry(file, {4, 5, ~0u});
  const auto entries = RowEntries(file, 2);
  ASSERT_TRUE(entries);
  EXPECT_EQ(LoadRowEntry(*entries, 1), (RowEntry{4, 5, ~0u}));
  EXPECT_FALSE(RowEntries(file, 3));
  EXPECT_FALSE(RowEntries(ByteSpan(file).first(file.size() - 1), 2));
  file.push_back(std::byte{});
  EXPECT_EQ(RowEntries(file, 2).error().message(),
            "the row index has 57 bytes and says 2 rows; the 2 rows of the manifest need 56 bytes");
  EXPECT_FALSE(RowEntries({}, 0));
}

TEST(HfJson, RoundTripsFeaturesWithOddNames) {
  const std::vector<std::string> names{"T-shirt/top", "\"quoted\"", "Hünd", ""};
  const auto features = ParseSchemaMetadata(SchemaMetadataJson(names));
  ASSERT_TRUE(features);
  EXPECT_EQ(features->image, "image");
  EXPECT_EQ(features->label, "label");
  EXPECT_EQ(features->label_names, names);
  EXPECT_EQ(ParseDatasetInfo(DatasetInfoJson(names))->label_names, names);
}

TEST(HfJson, RefusesNamesThatLeaveTheFolder) {
  EXPECT_FALSE(ParseState(R"({"_data_files": [{"filename": "../x.arrow"}]})"));
  EXPECT_FALSE(ParseState(R"({"_data_files": [{"filename": ""}]})"));
  EXPECT_FALSE(ParseState(R"({"_data_files": "x"})"));
  EXPECT_FALSE(ParseState("[[[["));
  EXPECT_FALSE(ParseDatasetDict(R"({"splits": ["a/b"]})"));
  EXPECT_TRUE(ParseState(StateJson({"data-00000-of-00001.arrow"}, "f", "train")));
}

}  // namespace
}  // namespace muster::data

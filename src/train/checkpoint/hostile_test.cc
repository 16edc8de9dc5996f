// Checkpoints whose checksums are right and whose content is not: changed by hand, renamed, or made
// by somebody else's program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "train/checkpoint/digest.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/parse_json.h"
#include "train/checkpoint/safetensors.h"
#include "train/checkpoint/sample_test.h"

namespace muster::checkpoint {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

void Put(const std::string& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
}

/// A checkpoint of one rank at step 4 whose parts can be replaced, checksums included.
class Hostile : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(SaveTogether(sample_, folder_.path(), 4, 1)[0]);
    manifest_ = json::parse(*PosixFiles().ReadAll(path_ + "/manifest.json", 1_MiB));
    file_ = *PosixFiles().ReadAll(path_ + "/" + name_, 1_MiB);
  }

  void PutManifest(const std::string& text) const {
    Put(path_ + "/manifest.json", text);
    Put(path_ + "/manifest.crc32c", SumText(Crc32c(AsBytes(text))));
  }
  /// The rank file with another header, and a manifest with the sums of that.
  void PutHeader(const std::string& header) const {
    const auto old = manifest_["files"][0]["header_bytes"].get<std::size_t>();
    Put(path_ + "/" + name_, header + file_.substr(old));
    json changed = manifest_;
    changed["files"][0]["header_bytes"] = header.size();
    changed["files"][0]["header_crc32c"] = Crc32c(AsBytes(header));
    PutManifest(changed.dump());
  }
  std::string HeaderJson() const {
    const auto bytes = manifest_["files"][0]["header_bytes"].get<std::size_t>();
    return file_.substr(8, bytes - 8);
  }
  static std::string WithLength(const std::string& text, std::uint64_t length) {
    return std::string(reinterpret_cast<const char*>(&length), 8) + text;
  }
  Result<Checkpoint> Open() const { return Checkpoint::Open(PosixFiles(), path_); }
  /// What every reader of tensors and Verify say; they must all fail.
  std::string FailureOfReaders() {
    auto opened = Open();
    if (!opened) return opened.error().message();
    const auto verified = opened->Verify();
    const auto digest = Digest(*opened, kAllGroups);
    auto again = Open();
    const auto diff = Diff(*again, *opened, kAllGroups);
    const auto exported = Export(*again, PosixFiles(), "param", folder_ / "out.safetensors");
    if (!verified || verified->damage.empty()) return "verified";
    if (digest) return "digested";
    if (diff) return "compared";
    if (exported) return "exported";
    EXPECT_EQ(digest.error().code(), Code::kDataLoss);
    EXPECT_EQ(exported.error().code(), Code::kDataLoss);
    EXPECT_THAT(digest.error().message(), HasSubstr(name_));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.safetensors"));
    return verified->damage[0];
  }

  TemporaryFolder folder_;
  Sample sample_{1, 16};
  const std::string path_ = folder_ / "step-000000000004";
  const std::string name_ = RankFileName(Rank(0), 1);
  json manifest_;
  std::string file_;
};

TEST_F(Hostile, AFolderNamedForAnotherStepIsDamagedAndBothAreNamed) {
  const std::string other = folder_ / "step-000000000050";
  std::filesystem::rename(path_, other);
  for (const std::string& name : {other, other + "/"}) {
    const auto opened = Checkpoint::Open(PosixFiles(), name);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), Code::kDataLoss);
    EXPECT_THAT(opened.error().message(),
                AllOf(HasSubstr("named for step 50"), HasSubstr("of step 4")));
    EXPECT_THAT(opened.error().hint(), HasSubstr("step-000000000004"));
  }
  // A name that says no step says nothing wrong.
  std::filesystem::rename(other, folder_ / "best");
  EXPECT_TRUE(Checkpoint::Open(PosixFiles(), folder_ / "best"));
}

TEST_F(Hostile, TheSliceTableIsHeldAgainstTheHeaderOfTheFile) {
  const auto with = [&](const std::function<void(json&)>& change) {
    json changed = manifest_;
    change(changed["files"][0]);
    PutManifest(changed.dump());
    return FailureOfReaders();
  };
  EXPECT_THAT(with([](json& file) {
                file["slices"][0]["length"] = file["slices"][0]["length"].get<int>() - 2;
                file["slices"][0]["data_offset"] = 8;
              }),
              HasSubstr("tells of other data"));
  EXPECT_THAT(with([](json& file) { file["slices"][1]["data_offset"] = 0; }),
              HasSubstr("tells of other data"));
  EXPECT_THAT(with([](json& file) { file["header_bytes"] = 0; }), HasSubstr("header_bytes"));
  EXPECT_THAT(with([](json& file) { file["header_crc32c"] = 0; }), HasSubstr("is damaged"));
}

TEST_F(Hostile, AHeaderOfAnotherKindIsFoundByEveryReader) {
  const std::string header = HeaderJson();
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = header;
    text.replace(text.find(from), from.size(), to);
    return WithLength(text, text.size());
  };
  const std::vector<std::string> headers = {
      WithLength(header, ~std::uint64_t{0}),
      WithLength(header, std::uint64_t{1} << 40),
      WithLength(header, header.size() - 8),
      WithLength(header, 0),
      WithLength(std::string(5000, '['), 5000),
      WithLength("{}", 2),
      WithLength("\xff\xfe{}", 4),
      changed("{",
              "{\"param@0000000000000000\":{\"data_offsets\":[0,4],\"dtype\":\"F32\","
              "\"shape\":[1]},"),
      changed("\"data_offsets\":[0,", "\"data_offsets\":[8,"),
      changed("\"data_offsets\":[0,", "\"data_offsets\":[-1,"),
      changed("\"data_offsets\":[0,", "\"data_offsets\":[18446744073709551615,"),
      changed("param@0000000000000000", "param@0000000000000016"),
      changed("\"F64\"", "\"I64\""),
      changed("\"crc32c\":\"", "\"crc32c\":\"00"),
  };
  for (std::size_t i = 0; i < headers.size(); ++i) {
    PutHeader(headers[i]);
    EXPECT_THAT(FailureOfReaders(), HasSubstr("the header")) << i;
  }
  PutHeader(WithLength(header, header.size()));
  EXPECT_EQ(FailureOfReaders(), "verified") << "the whole one is whole";
}

TEST_F(Hostile, AManifestIsReadInOneWayOrNotAtAll) {
  const std::string good = manifest_.dump();
  const auto failure = [&](const std::string& text) {
    PutManifest(text);
    const auto opened = Open();
    if (opened) return std::string("opened");
    EXPECT_EQ(opened.error().code(), Code::kDataLoss) << opened.error().message();
    EXPECT_THAT(opened.error().message(), HasSubstr("manifest.json"));
    EXPECT_NE(opened.error().hint(), "");
    return opened.error().message();
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return failure(text);
  };
  EXPECT_EQ(failure(good), "opened");
  EXPECT_THAT(failure("\xef\xbb\xbf" + good), HasSubstr("byte order mark"));
  EXPECT_THAT(failure(good + "{}"), HasSubstr("breaks"));
  EXPECT_THAT(failure(good + '\0'), HasSubstr("breaks"));
  EXPECT_THAT(changed("\"step\":4", "\"step\":NaN"), HasSubstr("breaks"));
  EXPECT_THAT(changed("\"step\":4", "\"step\":4,\"step\":2"), HasSubstr("'step' twice"));
  EXPECT_THAT(changed("\"width\":64", "\"width\":64,\"width\":65"), HasSubstr("'width' twice"));
  EXPECT_THAT(changed("\"model\":\"sample\"", "\"model\":\"\xff\""), HasSubstr("breaks"));
  EXPECT_THAT(changed("\"optimizer_step\":4", "\"optimizer_step\":5"), HasSubstr("optimizer_step"));
  EXPECT_THAT(changed("\"block_bytes\":4194304", "\"block_bytes\":0"), HasSubstr("block_bytes"));
  EXPECT_THAT(changed("\"block_bytes\":4194304,", ""), HasSubstr("block_bytes"));
  EXPECT_THAT(changed("\"virtual_shards\":8", "\"virtual_shards\":0"), HasSubstr("virtual_shards"));
  EXPECT_THAT(changed("\"world\":1", "\"world\":2"), HasSubstr("1 files of 2 ranks"));
}

TEST_F(Hostile, AManifestThatIsNoFileOrTooLargeIsDamageAndNoFaultOfTheCaller) {
  std::filesystem::resize_file(path_ + "/manifest.json", (std::uint64_t{64} << 20) + 1);
  EXPECT_EQ(Open().error().code(), Code::kDataLoss);
  std::filesystem::remove(path_ + "/manifest.json");
  std::filesystem::create_directory(path_ + "/manifest.json");
  EXPECT_EQ(Open().error().code(), Code::kDataLoss);
}

TEST(ParseJsonObject, TakesEqualKeysOfDifferentObjects) {
  EXPECT_TRUE(ParseJsonObject(R"({"a":{"k":1},"b":{"k":2},"k":[{"k":3},{"k":4}]})", {}));
  EXPECT_FALSE(ParseJsonObject(R"({"a":{"k":1,"j":2,"k":1}})", {}));
}

TEST(Export, TakesNoNameThatNamesNoFile) {
  const TemporaryFolder folder;
  SaveTogether(Sample(1, 16), folder.path(), 1, 1);
  auto opened = Checkpoint::Open(PosixFiles(), folder / "step-000000000001");
  for (const std::string& name : {std::string(), folder.path() + "/", std::string("/")}) {
    const Status done = Export(*opened, PosixFiles(), "param", name);
    ASSERT_FALSE(done) << name;
    EXPECT_THAT(done.error().message(), HasSubstr("names no file"));
    EXPECT_NE(done.error().hint(), "");
  }
}

}  // namespace
}  // namespace muster::checkpoint

#include "data/pack/packer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <map>

#include "base/file_system.h"
#include "data/dataset.h"
#include "data/pack/file_tree.h"
#include "data/pack/idx_format.h"
#include "data/testing/sample_data.h"
#include "data/verify/verify.h"

namespace muster::data {
namespace {

/// Every file below a folder by its relative path.
std::map<std::string, std::string> Contents(const std::string& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    contents[std::filesystem::relative(entry.path(), folder)] = ReadFile(entry.path());
  }
  return contents;
}

std::string Gzip(const std::string& text) {
  std::string out(text.size() + 1000, '\0');
  z_stream state{};
  MUSTER_CHECK(deflateInit2(&state, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  MUSTER_CHECK(deflate(&state, Z_FINISH) == Z_STREAM_END);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

Result<PackReport> PackFolder(const std::string& in, const std::string& out,
                              PackOptions options = {}, const InputOptions& input_options = {}) {
  options.durable = false;
  auto input = MUSTER_TRY(OpenInput(in, input_options));
  return Pack(PosixFiles(), input, out, options);
}

std::string ErrorOf(const Result<PackReport>& result) {
  return result ? "no error" : result.error().message();
}

void WriteIdx(const TempFolder& folder, const std::string& images, const std::string& labels) {
  WriteFile(folder / "idx/train-images-idx3-ubyte", images);
  WriteFile(folder / "idx/train-labels-idx1-ubyte", labels);
}

void WriteClassFolders(const TempFolder& folder) {
  for (int i = 0; i < 250; ++i) {
    const std::string name = std::string(i % 3 == 0 ? "cat" : "dog") + "/" + std::to_string(i);
    WriteFile(folder / ("in/" + name + ".png"), GreyPng(static_cast<std::uint8_t>(i)));
  }
}

TEST(Pack, GivesTheSameBytesForAnyNumberOfThreads) {
  const TempFolder folder;
  WriteIdx(folder, IdxImages(1234), IdxLabels(1234));
  ASSERT_TRUE(PackFolder(folder / "idx", folder / "one", {.shard_size = {100'000}}));
  for (const unsigned threads : {2u, 3u, 8u}) {
    const std::string out = folder / ("t" + std::to_string(threads));
    ASSERT_TRUE(PackFolder(folder / "idx", out, {.threads = threads, .shard_size = {100'000}}));
    EXPECT_EQ(Contents(out), Contents(folder / "one")) << threads;
  }
}

TEST(Pack, KeepsTestRowsInASplitOfTheirOwn) {
  const TempFolder folder;
  WriteIdx(folder, IdxImages(30), IdxLabels(30));
  WriteFile(folder / "idx/t10k-images-idx3-ubyte.gz", Gzip(IdxImages(20)));
  WriteFile(folder / "idx/t10k-labels-idx1-ubyte.gz", Gzip(IdxLabels(20)));
  const auto report = PackFolder(folder / "idx", folder / "set");
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->rows, 50u);
  const auto test = Dataset::Open(folder / "set", {.split = "test"});
  ASSERT_TRUE(test) << test.error().ToString();
  EXPECT_EQ((*test)->rows(), 20u);
  EXPECT_EQ((*test)->Read(13)->label, 3);
  EXPECT_EQ((*test)->Read(13)->source, "t10k-images-idx3-ubyte.gz[13]");
  EXPECT_EQ(Dataset::Open(folder / "set").error().message(),
            (folder / "set") + " has several splits: train, test");
}

TEST(Pack, NamesTheIdxFileAndTheNumbersThatDisagree) {
  const TempFolder folder;
  const std::string images = folder / "idx/train-images-idx3-ubyte";
  const std::string labels = folder / "idx/train-labels-idx1-ubyte";
  const auto error_of = [&](const std::string& image_file, const std::string& label_file) {
    WriteIdx(folder, image_file, label_file);
    return ErrorOf(PackFolder(folder / "idx", folder / "set"));
  };
  std::string short_body = IdxImages(10);
  short_body.resize(short_body.size() - 5);
  EXPECT_EQ(error_of(short_body, IdxLabels(10)),
            images + ": the body has 235 bytes, the header promises 240");
  EXPECT_EQ(error_of(IdxImages(10) + "x", IdxLabels(10)),
            images + ": there are more bytes than the header promises");
  EXPECT_EQ(error_of(IdxImages(10), IdxLabels(11)),
            images + " has 10 images, " + labels + " has 11 labels");
  EXPECT_EQ(error_of(IdxLabels(10), IdxLabels(10)),
            images + ": idx magic is 0x00000801, expected 0x00000803 (images)");
  EXPECT_EQ(error_of("", IdxLabels(10)), images + ": 0 bytes, too short for an idx file");
  std::string cut = IdxLabels(10);
  cut.resize(12);
  EXPECT_EQ(error_of(IdxImages(10), cut),
            labels + ": the body has 4 bytes, the header promises 10");
  std::string gzip = Gzip(IdxImages(10));
  gzip.resize(gzip.size() / 2);
  EXPECT_EQ(error_of(gzip, IdxLabels(10)), images + ": the gzip data ends too early");
  EXPECT_FALSE(PosixFiles().Exists(folder / "set"));
  EXPECT_FALSE(PosixFiles().Exists(folder / ".set.muster-part"));
}

TEST(Pack, RefusesBytesBehindGzipDataAsItDoesBehindOthers) {
  const TempFolder folder;
  const std::string images = Gzip(IdxImages(10));
  const std::string labels = Gzip(IdxLabels(10));
  for (const std::string& behind :
       {std::string("x"), std::string(600, '\0'), std::string("\x1f")}) {
    WriteIdx(folder, images + behind, labels);
    const auto bad_images = PackFolder(folder / "idx", folder / "set");
    ASSERT_FALSE(bad_images);
    EXPECT_EQ(bad_images.error().code(), Code::kDataLoss);
    EXPECT_FALSE(bad_images.error().hint().empty());
    WriteIdx(folder, images, labels + behind);
    EXPECT_FALSE(PackFolder(folder / "idx", folder / "set"));
  }
  WriteIdx(folder, Gzip(IdxImages(10).substr(0, 100)) + Gzip(IdxImages(10).substr(100)), labels);
  EXPECT_TRUE(PackFolder(folder / "idx", folder / "set"));  // members may follow each other
}

TEST(Pack, NamesANextStepForEveryBadIdxFile) {
  const TempFolder folder;
  const auto hint_of = [&](const std::string& images, const std::string& labels) {
    WriteIdx(folder, images, labels);
    const auto packed = PackFolder(folder / "idx", folder / "set");
    EXPECT_FALSE(packed);
    return packed ? std::string() : packed.error().hint();
  };
  std::string cut = Gzip(IdxImages(10));
  cut.resize(cut.size() / 2);
  std::string flipped = Gzip(IdxImages(10));
  flipped[flipped.size() / 2] ^= 1;
  std::string many = IdxLabels(10);
  many.replace(4, 4, "\xff\xff\xff\xff");
  for (const std::string& images :
       {cut, flipped, IdxImages(10) + "x", std::string(), IdxImages(10).substr(0, 9),
        IdxImages(10).substr(0, 50), IdxLabels(10), IdxImages(10, 0, 4), IdxImages(0)}) {
    EXPECT_NE(hint_of(images, IdxLabels(images == IdxImages(0) ? 0 : 10)), "") << images.size();
  }
  EXPECT_NE(hint_of(IdxImages(10), many), "");
}

TEST(Pack, LeavesAloneWhatIsInTheWayAndNoPackLeft) {
  const TempFolder folder;
  WriteIdx(folder, IdxImages(20), IdxLabels(20));
  const std::string part = folder / ".set.muster-part";
  WriteFile(part, "mine");
  const auto error_of = [&] {
    const auto packed = PackFolder(folder / "idx", folder / "set");
    EXPECT_FALSE(packed);
    return packed ? Error(Code::kBug, "") : packed.error();
  };
  EXPECT_THAT(error_of().message(), testing::HasSubstr("is in the way"));
  EXPECT_EQ(ReadFile(part), "mine");
  std::filesystem::remove(part);
  std::filesystem::create_directory_symlink(folder / "idx", part);
  EXPECT_THAT(error_of().message(), testing::HasSubstr("is in the way"));
  std::filesystem::remove(part);
  WriteFile(part + "/thesis.tex", "mine");
  EXPECT_THAT(error_of().message(), testing::HasSubstr("thesis.tex"));
  EXPECT_FALSE(error_of().hint().empty());
  EXPECT_EQ(ReadFile(part + "/thesis.tex"), "mine");
  std::filesystem::remove_all(part);
  WriteFile(part + "/train/data-00000.arrow.part", "half");
  EXPECT_TRUE(PackFolder(folder / "idx", folder / "set"));
}

TEST(Pack, ReplacesNoFile) {
  const TempFolder folder;
  WriteIdx(folder, IdxImages(20), IdxLabels(20));
  WriteFile(folder / "set", "mine");
  const auto refused = PackFolder(folder / "idx", folder / "set", {.replace = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kPrecondition);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("is not a folder"));
  EXPECT_FALSE(refused.error().hint().empty());
  EXPECT_EQ(ReadFile(folder / "set"), "mine");
}

TEST(Pack, RefusesAnExistingFolderAndReplacesOnlyDatasets) {
  const TempFolder folder;
  const std::string set = PackSample(folder, 20);
  const auto before = Contents(set);
  const auto refused = PackFolder(folder / "idx", set);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kAlreadyExists);
  EXPECT_EQ(Contents(set), before);
  WriteIdx(folder, IdxImages(40), IdxLabels(40));
  ASSERT_TRUE(PackFolder(folder / "idx", set, {.replace = true}));
  EXPECT_EQ((*Dataset::Open(set))->rows(), 40u);
  WriteFile(folder / "home/diary.txt", "dear diary");
  const auto saved = PackFolder(folder / "idx", folder / "home", {.replace = true});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code(), Code::kPrecondition);
  EXPECT_EQ(ReadFile(folder / "home/diary.txt"), "dear diary");
}

TEST(Pack, ReplacesNothingThatItsOwnerWouldMiss) {
  const TempFolder folder;
  const std::string set = PackSample(folder, 20);
  const std::vector<std::pair<std::string, std::string>> kept{
      {set + "/notes.txt", "notes.txt"},
      {set + "/mine/a", "mine"},
      {folder / "project/thesis.tex", "thesis.tex"},
      {folder / "lone/state.json", "state.json"},
  };
  WriteFile(folder / "project/state.json", "{}");
  for (const auto& [path, stranger] : kept) {
    WriteFile(path, "precious");
    const std::string place = path.starts_with(set) ? set : path.substr(0, path.rfind('/'));
    const auto refused = PackFolder(folder / "idx", place, {.replace = true});
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code(), Code::kPrecondition);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr(stranger));
    EXPECT_EQ(ReadFile(path), "precious");
  }
}

TEST(Pack, KeepsItsInputAndItsOutputApart) {
  const TempFolder folder;
  const std::string set = PackSample(folder, 20);
  const auto before = Contents(folder / "idx");
  std::filesystem::create_directory_symlink(folder / "idx", folder / "alias");
  for (const std::string place : {"idx", "idx/", "idx/out", ".", "alias"}) {
    const auto refused = PackFolder(folder / "idx", folder / place, {.replace = true});
    ASSERT_FALSE(refused) << place;
    EXPECT_EQ(refused.error().code(), Code::kInvalid) << place;
  }
  EXPECT_EQ(Contents(folder / "idx"), before);
}

TEST(Pack, TakesAFolderWithDotsInItsName) {
  const TempFolder folder;
  const std::string set = PackSample(folder, 20);
  EXPECT_TRUE(PackFolder(folder / "idx", set + "/.", {.replace = true}));
  EXPECT_FALSE(std::filesystem::exists(set + "/..muster-part"));
  ASSERT_TRUE(PackFolder(folder / "idx", folder / "no/../other"));
  EXPECT_FALSE(std::filesystem::exists(folder / "no"));
  EXPECT_TRUE(std::filesystem::exists(folder / "other"));
}

TEST(Pack, ReplacesTheFolderThatALinkLeadsTo) {
  const TempFolder folder;
  const std::string set = PackSample(folder, 20);
  WriteIdx(folder, IdxImages(40), IdxLabels(40));
  std::filesystem::create_directory_symlink(set, folder / "link");
  ASSERT_TRUE(PackFolder(folder / "idx", folder / "link", {.replace = true}));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ((*Dataset::Open(set))->rows(), 40u);
}

TEST(Pack, RemovesWhatAKilledPackLeft) {
  const TempFolder folder;
  WriteIdx(folder, IdxImages(20), IdxLabels(20));
  WriteFile(folder / ".set.muster-part/data-00000.arrow.part", "half");
  ASSERT_TRUE(PackFolder(folder / "idx", folder / "set"));
  EXPECT_FALSE(PosixFiles().Exists(folder / ".set.muster-part"));
  EXPECT_EQ((*Dataset::Open(folder / "set"))->rows(), 20u);
}

TEST(PackImages, TakesClassesFromFoldersAndBytesAsTheyAre) {
  const TempFolder folder;
  WriteClassFolders(folder);
  WriteFile(folder / "in/cat/notes.txt", "not an image");
  WriteFile(folder / "in/.hidden/x.png", "junk");
  ASSERT_TRUE(PackFolder(folder / "in", folder / "set", {.threads = 2}));
  const auto set = Dataset::Open(folder / "set");
  ASSERT_TRUE(set) << set.error().ToString();
  EXPECT_EQ((*set)->rows(), 250u);
  EXPECT_EQ((*set)->label_names(), (std::vector<std::string>{"cat", "dog"}));
  const auto row = (*set)->Read(1);
  EXPECT_EQ(row->source, "cat/102.png");
  EXPECT_EQ(row->path, "102.png");
  EXPECT_EQ(AsText(row->image), GreyPng(102));
  EXPECT_EQ((*set)->Read(249)->label, 1);
}

TEST(PackImages, SplitFoldersBecomeSplits) {
  const TempFolder folder;
  WriteFile(folder / "in/train/a/1.png", GreyPng(1));
  WriteFile(folder / "in/train/b/2.png", GreyPng(2));
  WriteFile(folder / "in/val/b/3.png", GreyPng(3));
  ASSERT_TRUE(PackFolder(folder / "in", folder / "set"));
  const auto validation = Dataset::Open(folder / "set", {.split = "validation"});
  ASSERT_TRUE(validation) << validation.error().ToString();
  EXPECT_EQ((*validation)->Read(0)->label, 1);
  EXPECT_EQ((*validation)->label_names(), (std::vector<std::string>{"a", "b"}));
}

std::vector<std::string> NotesOf(const std::string& in, bool leave_out = false) {
  const auto input = OpenInput(in, {.leave_out = leave_out});
  EXPECT_TRUE(input) << input.error().ToString();
  return input ? input->notes : std::vector<std::string>();
}

TEST(PackImages, StopsAtALinkToAFolder) {
  const TempFolder folder;
  WriteFile(folder / "in/cat/1.png", GreyPng(1));
  WriteFile(folder / "elsewhere/2.png", GreyPng(2));
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "in/dog");
  const auto refused = OpenInput(folder / "in", {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("in/dog is a link to a folder"));
  EXPECT_THAT(NotesOf(folder / "in", true), testing::Contains("left out a link to a folder: dog"));
}

TEST(PackImages, SaysWhatItPassedOver) {
  const TempFolder folder;
  WriteFile(folder / "in/a/1.png", GreyPng(1));
  WriteFile(folder / "in/a/._1.png", "junk");
  WriteFile(folder / "in/.hidden/2.png", GreyPng(2));
  WriteFile(folder / "in/a/readme.md", "text");
  std::filesystem::create_directory(folder / "in/empty");
  std::filesystem::create_directory(folder / "in/a/deeper");
  EXPECT_THAT(NotesOf(folder / "in"),
              testing::UnorderedElementsAre(
                  "ignored a file that is not named like an image: a/readme.md",
                  testing::HasSubstr("2 hidden images and folders were passed over"),
                  "a folder has no images and was left out: empty"));
}

TEST(PackImages, TakesNoSplitForAClass) {
  for (const std::string name : {"train", "test", "validation", "val", "dev", "Test"}) {
    const TempFolder folder;
    WriteFile(folder / ("in/" + name + "/a/1.png"), GreyPng(1));
    WriteFile(folder / "in/extra/a/2.png", GreyPng(2));
    const auto refused = OpenInput(folder / "in", {});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code(), Code::kPrecondition);
    EXPECT_THAT(refused.error().message(),
                testing::HasSubstr("in/" + name + " is named like a split"));
    EXPECT_TRUE(OpenInput(folder / "in", {.label_names = {"extra", name}})) << name;
  }
  const TempFolder folder;
  WriteFile(folder / "in/Train/a/1.png", GreyPng(1));
  WriteFile(folder / "in/Test/a/2.png", GreyPng(2));
  EXPECT_THAT(OpenInput(folder / "in", {}).error().message(), testing::HasSubstr("lower case"));
}

TEST(PackImages, NamesWhatIsNotUtf8ByteForByteAndCanLeaveItOut) {
  const TempFolder folder;
  WriteFile(folder / "in/a/1.png", GreyPng(1));
  WriteFile(folder / "in/a/\xff.png", GreyPng(2));
  EXPECT_THAT(ErrorOf(PackFolder(folder / "in", folder / "set")),
              testing::HasSubstr("in/a/\\xff.png has a name that is not UTF-8"));
  WriteFile(folder / "in/b\xfe/3.png", GreyPng(3));
  EXPECT_THAT(OpenInput(folder / "in", {}).error().message(), testing::HasSubstr("in/b\\xfe"));
  const auto packed =
      PackFolder(folder / "in", folder / "set", {.on_error = OnError::kSkip}, {.leave_out = true});
  ASSERT_TRUE(packed) << packed.error().ToString();
  EXPECT_EQ(packed->rows, 1u);
  EXPECT_EQ(packed->skipped, 1u);
  EXPECT_EQ((*Dataset::Open(folder / "set"))->label_names(), std::vector<std::string>{"a"});
}

struct BadImage {
  std::string name;
  std::string content;
  std::string reason;
};

std::vector<BadImage> BadImages() {
  std::string huge = GreyPng(1);
  huge.replace(16, 8, std::string("\x00\x01\x86\xa0\x00\x01\x86\xa0", 8));
  std::string cut = GreyPng(1);
  cut.resize(cut.size() * 9 / 10);
  return {{"empty.png", "", "is empty"},
          {"cut.png", cut, "is cut short"},
          {"huge.png", huge, "has 100000 × 100000 pixels"},
          {"really.jpg", "GIF89a", "is a GIF"}};
}

TEST(PackImages, StopsAtABrokenImageNamingIt) {
  for (const BadImage& bad : BadImages()) {
    const TempFolder folder;
    WriteClassFolders(folder);
    WriteFile(folder / ("in/dog/" + bad.name), bad.content);
    const std::string error = ErrorOf(PackFolder(folder / "in", folder / "set", {.threads = 2}));
    EXPECT_TRUE(error.starts_with(folder / ("in/dog/" + bad.name) + " " + bad.reason)) << error;
    EXPECT_FALSE(PosixFiles().Exists(folder / "set"));
  }
}

TEST(PackImages, LeavesBrokenImagesOutWhenAskedTo) {
  const TempFolder folder;
  WriteClassFolders(folder);
  for (const BadImage& bad : BadImages()) WriteFile(folder / ("in/dog/" + bad.name), bad.content);
  ASSERT_EQ(::symlink("/etc/passwd", (folder / "in/cat/link.png").c_str()), 0);
  ASSERT_EQ(::mkfifo((folder / "in/cat/pipe.png").c_str(), 0600), 0);
  const auto report =
      PackFolder(folder / "in", folder / "set", {.threads = 2, .on_error = OnError::kSkip});
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->rows, 250u);
  EXPECT_EQ(report->skipped, 6u);
  EXPECT_EQ(report->first_skipped[0].name, folder / "in/cat/link.png");
  EXPECT_EQ(report->first_skipped[0].reason, "is a symbolic link, and links are not followed");
  EXPECT_EQ(report->first_skipped[1].reason, "is not a regular file");
}

TEST(PackImages, RefusesALargeFileByBothNumbers) {
  const TempFolder folder;
  WriteFile(folder / "in/a/1.png", GreyPng(1));
  const std::size_t size = GreyPng(1).size();
  const auto limit = static_cast<std::int64_t>(size);
  EXPECT_TRUE(PackFolder(folder / "in", folder / "set", {}, {.max_file = {limit}}));
  const auto refused = PackFolder(folder / "in", folder / "no", {}, {.max_file = {limit - 1}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kPrecondition);
  EXPECT_THAT(refused.error().message(),
              testing::HasSubstr(std::to_string(size) + " bytes, the limit is " +
                                 std::to_string(size - 1)));
}

TEST(PackImages, ASplitOfWhichNothingIsLeftIsNone) {
  const TempFolder folder;
  WriteFile(folder / "in/train/a/1.png", GreyPng(1));
  WriteFile(folder / "in/test/a/1.png", "junk");
  const auto refused = PackFolder(folder / "in", folder / "set", {.on_error = OnError::kSkip});
  EXPECT_EQ(ErrorOf(refused), "split test: no image is left to pack");
  EXPECT_FALSE(PosixFiles().Exists(folder / "set"));
}

TEST(Pack, TakesNoTwoFilesForOneSplit) {
  const TempFolder folder;
  WriteIdx(folder, IdxImages(4), IdxLabels(4));
  WriteFile(folder / "idx/training-images-idx3-ubyte", IdxImages(4));
  EXPECT_THAT(ErrorOf(PackFolder(folder / "idx", folder / "set")),
              testing::HasSubstr("are both the train images"));
}

TEST(PackImages, FindsDamagedPixelsOnlyWithTheDecodeCheck) {
  const TempFolder folder;
  std::string png = GreyPng(9);
  png[png.size() - 20] = static_cast<char>(png[png.size() - 20] ^ 4);
  WriteFile(folder / "in/a/1.png", png);
  EXPECT_TRUE(PackFolder(folder / "in", folder / "lenient"));
  EXPECT_FALSE(PackFolder(folder / "in", folder / "strict", {}, {.decode_check = true}));
}

void PutChunk(std::string& png, const std::string& type, const std::string& body) {
  PutBig(png, static_cast<std::uint32_t>(body.size()));
  const std::string summed = type + body;
  png += summed;
  PutBig(png, static_cast<std::uint32_t>(
                  crc32_z(0, reinterpret_cast<const Bytef*>(summed.data()), summed.size())));
}

/// A black PNG of one bit a pixel: a quarter of a gigapixel in some 30 KB.
std::string BlackPng(std::uint32_t height, std::uint32_t width) {
  const std::string rows(std::size_t{height} * (1 + (width + 7) / 8), '\0');
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  MUSTER_CHECK(compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                         reinterpret_cast<const Bytef*>(rows.data()), rows.size(), 9) == Z_OK);
  packed.resize(size);
  std::string png = "\x89PNG\r\n\x1a\n";
  std::string header;
  PutBig(header, width);
  PutBig(header, height);
  PutChunk(png, "IHDR", header + std::string("\x01\0\0\0\0", 5));
  PutChunk(png, "IDAT", packed);
  PutChunk(png, "IEND", "");
  return png;
}

TEST(PackImages, TakesLargerImagesThanUsualWhenAskedToWhateverTheCheck) {
  const TempFolder folder;
  WriteFile(folder / "in/a/1.png", BlackPng(1u << 14, (1u << 14) + 1));  // above kMaxPixels
  const auto refused = PackFolder(folder / "in", folder / "set");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint(),
            "raise --max-pixels if you trust it, or leave it out with --on-error skip");
  const auto packed =
      PackFolder(folder / "in", folder / "set", {}, {.max_pixels = 1u << 29, .decode_check = true});
  ASSERT_TRUE(packed) << packed.error().ToString();
  const VerifyReport report = VerifySplit(FindSplits(folder / "set")->front());
  EXPECT_EQ(report.damages, 0u) << report.first[0].ToString();
}

TEST(PackImages, RefusesAbsurdDimensionsWhateverTheLimit) {
  std::string png = GreyPng(1);
  png.replace(16, 8, std::string(8, '\x7f'));  // 2^62 pixels: more bytes than there are
  const TempFolder folder;
  WriteFile(folder / "in/a/1.png", png);
  const auto packed = PackFolder(folder / "in", folder / "set", {},
                                 {.max_pixels = kAnyPixels, .decode_check = true});
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().code(), Code::kExhausted);
}

TEST(PackImages, RefusesFoldersWithoutClassesOrImages) {
  const TempFolder folder;
  WriteFile(folder / "flat/1.png", GreyPng(1));
  EXPECT_EQ(ErrorOf(PackFolder(folder / "flat", folder / "set")),
            (folder / "flat/1.png") + " is in no class folder");
  WriteFile(folder / "none/a/readme.md", "");
  EXPECT_EQ(ErrorOf(PackFolder(folder / "none", folder / "set")),
            "no images below " + (folder / "none"));
  EXPECT_FALSE(PackFolder(folder / "absent", folder / "set"));
  EXPECT_FALSE(PackFolder(folder / "flat/1.png", folder / "set"));
}

TEST(IdxHeader, BoundsItsDimensions) {
  const std::string huge("\0\0\x08\x03\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff", 16);
  EXPECT_FALSE(ParseIdxHeader(AsBytes(huge), 3));
  EXPECT_FALSE(ParseIdxHeader(AsBytes(std::string_view(huge).substr(0, 9)), 3));
}

}  // namespace
}  // namespace muster::data

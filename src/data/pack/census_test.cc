#include "data/pack/census.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/testing/sample_data.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void AddRows(Census& census, const ImageShape& shape, std::uint32_t count,
             const std::string& source) {
  RowColumns rows;
  for (std::uint32_t i = 0; i < count; ++i) {
    [[maybe_unused]] const MutableByteSpan room = rows.Reserve(1);
    rows.Add(1, {.path = "x", .label = 0, .source = source + std::to_string(i), .shape = shape});
  }
  census.Add(rows);
}

TEST(Census, SaysNothingOfImagesThatAreAlike) {
  Census census;
  EXPECT_THAT(census.Notes(), IsEmpty());
  AddRows(census, {28, 28, 1}, 3, "a/");
  AddRows(census, {28, 28, 1}, 2, "b/");
  EXPECT_THAT(census.Notes(), IsEmpty());
  ASSERT_EQ(census.kinds().size(), 1u);
  EXPECT_EQ(census.kinds()[0].images, 5u);
  EXPECT_EQ(census.kinds()[0].first, "a/0");
}

TEST(Census, CountsEachSizeAndNamesItsFirstImage) {
  Census census;
  AddRows(census, {28, 30, 1}, 1, "a/");
  AddRows(census, {32, 32, 1}, 3, "b/");
  AddRows(census, {28, 30, 1}, 1, "c/");
  EXPECT_THAT(census.Notes(),
              ElementsAre("the images have 2 sizes: 32 × 32 (3 images, the first b/0), 30 × 28 (2 "
                          "images, the first a/0); a model takes images of one size, and "
                          "muster-train refuses the set until they are resized"));
}

TEST(Census, SaysWhatATrainerMakesOfGreyAndColour) {
  Census grey_first;
  AddRows(grey_first, {8, 8, 1}, 1, "a/");
  AddRows(grey_first, {8, 8, 3}, 4, "b/");
  EXPECT_THAT(grey_first.Notes(),
              ElementsAre("1 image is grey, the first a/0, and 4 in colour, the first b/0: "
                          "muster-train needs --channels 1 or --channels 3"));
  Census colour_first;
  AddRows(colour_first, {8, 8, 3}, 4, "b/");
  AddRows(colour_first, {8, 8, 1}, 2, "c/");
  EXPECT_THAT(colour_first.Notes(),
              ElementsAre("2 images are grey, the first c/0, and 4 in colour, the first b/0: "
                          "muster-train needs --channels 1 or --channels 3"));
}

TEST(Census, KeepsToABoundedNumberOfSizesAndCountsTheRest) {
  Census census;
  for (std::uint32_t i = 1; i <= Census::kMostKinds + 50; ++i) AddRows(census, {i, 1, 1}, 2, "a/");
  EXPECT_EQ(census.kinds().size(), Census::kMostKinds);
  EXPECT_EQ(census.others(), 100u);
  EXPECT_THAT(census.Notes(), ElementsAre(HasSubstr("more than 1000 sizes")));
}

TEST(NotesOnClasses, NamesThoseWithoutAnImageInTheSetOrInASplit) {
  EXPECT_THAT(NotesOnClasses({"a", "b"}, {{"train", {1, 2}}, {"test", {3, 4}}}), IsEmpty());
  EXPECT_THAT(
      NotesOnClasses({"a", "b", "c", "d"}, {{"train", {1, 0, 0, 2}}, {"test", {0, 3, 0, 4}}}),
      ElementsAre("1 of the 4 classes has no image: c",
                  "the split train has no image of 1 of the 4 classes, which cannot be "
                  "learned: b",
                  "the split test has no image of 1 of the 4 classes, which will not be "
                  "scored: a"));
}

struct Packed {
  std::vector<std::string> notes;
  Census census;
};

Packed PackIn(const TempFolder& folder, const InputOptions& options, unsigned threads = 2) {
  auto input = OpenInput(folder / "in", options);
  MUSTER_CHECK(input.has_value());
  const auto report =
      Pack(PosixFiles(), *input, folder / "set",
           {.threads = threads, .replace = true, .durable = false, .on_error = OnError::kSkip});
  MUSTER_CHECK(report.has_value());
  return {input->notes, report->census};
}

TEST(Census, OfAPackDependsOnNoThreadAndLeavesOutWhatWasLeftOut) {
  const TempFolder folder;
  for (std::uint32_t i = 0; i < 300; ++i) {
    WriteFile(folder / ("in/cat/" + std::to_string(1000 + i) + ".png"),
              i == 7 ? "junk" : GreyPng(1, i % 3 == 0 ? 5 : 6, 7));
  }
  std::vector<std::string> notes;
  for (const unsigned threads : {1u, 2u, 5u}) {
    const Packed packed = PackIn(folder, {}, threads);
    ASSERT_EQ(packed.census.kinds().size(), 2u);
    EXPECT_EQ(packed.census.kinds()[0].images, 100u);
    EXPECT_EQ(packed.census.kinds()[1].images, 199u);
    EXPECT_EQ(packed.census.kinds()[1].first, "cat/1001.png");
    if (notes.empty()) notes = packed.census.Notes();
    EXPECT_EQ(packed.census.Notes(), notes);
  }
  EXPECT_THAT(notes, ElementsAre(HasSubstr("7 × 6 (199 images, the first cat/1001.png)")));
}

TEST(Labels, ThatNoImageHasAreNamed) {
  const TempFolder folder;
  WriteFile(folder / "in/cat/1.png", GreyPng(1));
  WriteFile(folder / "in/dog/1.png", GreyPng(1));
  EXPECT_THAT(PackIn(folder, {.label_names = {"bird", "cat", "dog", "fish"}}).notes,
              testing::Contains("2 of the 4 classes have no image: bird, fish"));
}

TEST(Labels, OfIdxFilesMayBeMoreThanThereAreAndThatIsSaid) {
  const TempFolder folder;
  WriteFile(folder / "in/train-images-idx3-ubyte", IdxImages(4));
  WriteFile(folder / "in/train-labels-idx1-ubyte", IdxLabels(4));
  EXPECT_THAT(PackIn(folder, {}).notes, ElementsAre(HasSubstr("label names: 0 to 3")));
  EXPECT_THAT(PackIn(folder, {.label_names = {"a", "b", "c", "d", "e"}}).notes,
              ElementsAre("1 of the 5 classes has no image: e"));
  EXPECT_FALSE(OpenInput(folder / "in", {.label_names = {"a", "b", "c"}}));
}

}  // namespace
}  // namespace muster::data

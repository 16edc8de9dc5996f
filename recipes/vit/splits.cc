#include "vit/splits.h"

#include <algorithm>

#include "base/text.h"
#include "data/layout/find_splits.h"

namespace muster::recipes {
namespace {

// A folder of one split without a name is for training, and for nothing else: scored on, it would
// be the rows that were learned.
Status OpenTrain(const std::string& path, const std::vector<data::SplitPlace>& places,
                 train::Splits& splits) {
  const bool unnamed = places.size() == 1 && places[0].name.empty();
  splits.train = MUSTER_TRY(data::Dataset::Open(path, {.split = unnamed ? "" : "train"}));
  return Ok();
}

Status OpenTest(const std::string& path, const std::vector<data::SplitPlace>& places,
                const std::string& wanted, train::Splits& splits) {
  const auto open = [&](const std::string& name) -> Status {
    splits.test = MUSTER_TRY(data::Dataset::Open(path, {.split = name}));
    splits.test_name = name;
    return Ok();
  };
  if (!wanted.empty()) return Within("--eval-split", open(wanted));
  for (const char* name : {"test", "validation"}) {
    const auto has = [&](const data::SplitPlace& place) { return place.name == name; };
    if (std::ranges::any_of(places, has)) return open(name);
  }
  return Ok();
}

}  // namespace

Result<train::Splits> OpenSplits(const std::string& path, const std::string& eval_split) {
  const std::vector<data::SplitPlace> places = MUSTER_TRY(data::FindSplits(path));
  train::Splits splits;
  MUSTER_TRY(OpenTrain(path, places, splits));
  MUSTER_TRY(OpenTest(path, places, eval_split, splits));
  return splits;
}

Result<data::ImageShape> ImageOf(const data::Dataset& dataset) {
  if (dataset.rows() == 0) return Error(Code::kPrecondition, "the dataset has no rows");
  const data::RowView row = MUSTER_TRY(dataset.Read(0));
  const auto header =
      MUSTER_TRY(Within(dataset.Where(0), data::ReadImageHeader(row.image, data::kAnyPixels)));
  return data::ImageShape{header.height, header.width, header.channels};
}

namespace {

constexpr std::uint64_t kMostLookedAt = std::uint64_t{256} << 20;

std::string ClassText(const std::vector<std::string>& names, std::size_t i) {
  return i < names.size() ? "'" + names[i] + "'" : "absent";
}

std::string SizeText(std::uint32_t width, std::uint32_t height) {
  return std::to_string(width) + " × " + std::to_string(height) + " pixels";
}

Status CheckClasses(const train::Splits& splits) {
  const auto& learned = splits.train->label_names();
  if (learned.size() < 2) {
    return Error(
        Code::kPrecondition,
        "the split train names " + Counted(learned.size(), "class", "es") + ": two are the least",
        "'muster data ls' shows them; a folder for each class makes them");
  }
  if (splits.test == nullptr) return Ok();
  const auto& scored = splits.test->label_names();
  for (std::size_t i = 0; i < std::max(learned.size(), scored.size()); ++i) {
    if (ClassText(learned, i) == ClassText(scored, i)) continue;
    return Error(Code::kPrecondition,
                 "class " + std::to_string(i) + " is " + ClassText(learned, i) +
                     " in the split train and " + ClassText(scored, i) + " in " + splits.test_name,
                 "pack both splits together, or score on another with --eval-split NAME");
  }
  if (splits.test->rows() == 0) {
    return Error(Code::kPrecondition, "the split " + splits.test_name + " has no rows");
  }
  const data::RowView row = MUSTER_TRY(splits.test->Read(0));
  if (row.label >= 0) return Ok();
  return Error(Code::kPrecondition,
               splits.test->Where(0) + ": the label is " + std::to_string(row.label) +
                   ", the split " + splits.test_name + " cannot be scored",
               "name a split with labels: --eval-split validation");
}

Status LookAtImage(const data::Dataset& set, std::uint64_t row, const data::ImageShape& image,
                   const SplitChecks& checks) {
  const data::RowView view = MUSTER_TRY(set.Read(row));
  const auto header =
      MUSTER_TRY(Within(set.Where(row), data::ReadImageHeader(view.image, data::kAnyPixels)));
  if (header.height != image.height || header.width != image.width) {
    return Error(Code::kPrecondition,
                 set.Where(row) + ": the image has " + SizeText(header.width, header.height) +
                     ", the first one of train has " + SizeText(image.width, image.height),
                 "a model takes images of one size: resize them to it, then pack them again");
  }
  return Within(set.Where(row), data::CheckColour(header, image, checks.colour));
}

Status CheckImage(const data::Dataset& set, std::uint64_t row, const data::ImageShape& image,
                  const SplitChecks& checks) {
  Status looked = LookAtImage(set, row, image, checks);
  MUSTER_TRY(set.CheckRead(std::span(&row, 1)));
  return looked;
}

// The loader refuses such an image as well, but in the middle of a run.
Status CheckImages(const data::Dataset& set, const data::ImageShape& image,
                   const SplitChecks& checks) {
  std::uint64_t bytes = 0;
  for (const data::ShardInfo& shard : set.shards()) bytes += shard.bytes;
  const std::uint64_t stride = checks.every_image ? bytes / kMostLookedAt + 1 : set.rows();
  for (std::uint64_t row = 0; row < set.rows(); row += stride) {
    MUSTER_TRY(CheckImage(set, row, image, checks));
  }
  return Ok();
}

}  // namespace

Status CheckSplits(const train::Splits& splits, const data::ImageShape& image,
                   const SplitChecks& checks) {
  MUSTER_TRY(CheckClasses(splits));
  if (splits.test != nullptr) MUSTER_TRY(CheckImages(*splits.test, image, checks));
  return CheckImages(*splits.train, image, checks);
}

}  // namespace muster::recipes

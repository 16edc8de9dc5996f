#include "data/pack/census.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"

namespace muster::data {
namespace {

constexpr std::size_t kMostListed = 5;

/// "a, b, c and 7 more".
std::string Listed(const std::vector<std::string>& items) {
  const std::size_t shown = std::min(items.size(), kMostListed);
  const std::string list = fmt::to_string(fmt::join(items.begin(), items.begin() + shown, ", "));
  return shown == items.size() ? list : fmt::format("{} and {} more", list, items.size() - shown);
}

std::string NoteOnSizes(std::vector<ImageKind> sizes, std::uint64_t others) {
  std::ranges::sort(sizes, [](const ImageKind& a, const ImageKind& b) {
    return std::tie(b.images, a.first) < std::tie(a.images, b.first);
  });
  std::vector<std::string> items;
  for (const ImageKind& size : sizes) {
    items.push_back(fmt::format("{} × {} ({}, the first {})", size.shape.width, size.shape.height,
                                Counted(size.images, "image"), size.first));
  }
  return fmt::format(
      "the images have {}{} sizes: {}; a model takes images of one size, and muster-train refuses "
      "the set until they are resized",
      others > 0 ? "more than " : "", sizes.size(), Listed(items));
}

std::string NoteOnColour(const ImageKind& grey, const ImageKind& colour) {
  return fmt::format(
      "{} grey, the first {}, and {} in colour, the first {}: muster-train needs --channels 1 or "
      "--channels 3",
      grey.images == 1 ? "1 image is" : fmt::format("{} images are", grey.images), grey.first,
      colour.images, colour.first);
}

/// The kinds that are alike in what `same` looks at, as one.
template <typename Same>
std::vector<ImageKind> Merged(const std::vector<ImageKind>& kinds, Same same) {
  std::vector<ImageKind> merged;
  for (const ImageKind& kind : kinds) {
    const auto known = std::ranges::find_if(
        merged, [&](const ImageKind& other) { return same(other.shape, kind.shape); });
    if (known == merged.end()) {
      merged.push_back(kind);
    } else {
      known->images += kind.images;
    }
  }
  return merged;
}

/// The names of the classes that have no image but are not in `but`.
std::vector<std::string> Absent(const std::vector<std::string>& names,
                                const std::vector<std::uint64_t>& images,
                                const std::vector<std::uint64_t>& everywhere) {
  std::vector<std::string> absent;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (images[i] == 0 && everywhere[i] > 0) absent.push_back(names[i]);
  }
  return absent;
}

}  // namespace

ImageKind* Census::KindOf(const ImageShape& shape) {
  const auto key = std::tuple(shape.height, shape.width, shape.channels);
  if (const auto known = places_.find(key); known != places_.end()) return &kinds_[known->second];
  if (kinds_.size() >= kMostKinds) return nullptr;
  places_.emplace(key, kinds_.size());
  return &kinds_.emplace_back(ImageKind{.shape = shape});
}

void Census::Add(const RowColumns& rows) {
  ImageKind* kind = nullptr;
  for (std::uint32_t row = 0; row < rows.rows(); ++row) {
    const ImageShape& shape = rows.ShapeOf(row);
    if (kind == nullptr || kind->shape != shape) kind = KindOf(shape);
    if (kind == nullptr) {
      ++others_;
    } else if (kind->images++ == 0) {
      kind->first = rows.SourceOf(row);
    }
  }
}

std::vector<std::string> Census::Notes() const {
  std::vector<std::string> notes;
  const auto sizes = Merged(kinds_, [](const ImageShape& a, const ImageShape& b) {
    return a.height == b.height && a.width == b.width;
  });
  if (sizes.size() > 1) notes.push_back(NoteOnSizes(sizes, others_));
  const auto colours = Merged(
      kinds_, [](const ImageShape& a, const ImageShape& b) { return a.channels == b.channels; });
  if (colours.size() > 1) {
    const bool grey_first = colours[0].shape.channels == 1;
    notes.push_back(NoteOnColour(colours[grey_first ? 0 : 1], colours[grey_first ? 1 : 0]));
  }
  return notes;
}

std::vector<std::string> NotesOnClasses(const std::vector<std::string>& names,
                                        const std::vector<SplitClasses>& splits) {
  std::vector<std::uint64_t> all(names.size());
  for (const SplitClasses& split : splits) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += split.images[i];
  }
  const std::string of = fmt::format("of the {}", Counted(names.size(), "class", "es"));
  std::vector<std::string> notes;
  const std::vector<std::uint64_t> any(names.size(), 1);
  if (const auto absent = Absent(names, all, any); !absent.empty()) {
    notes.push_back(fmt::format("{} {} no image: {}", absent.size(),
                                of + (absent.size() == 1 ? " has" : " have"), Listed(absent)));
  }
  for (const SplitClasses& split : splits) {
    const auto absent = Absent(names, split.images, all);
    if (absent.empty()) continue;
    notes.push_back(
        fmt::format("the split {} has no image of {} {}, {}: {}", split.split, absent.size(), of,
                    split.split == "train" ? "which cannot be learned" : "which will not be scored",
                    Listed(absent)));
  }
  return notes;
}

}  // namespace muster::data

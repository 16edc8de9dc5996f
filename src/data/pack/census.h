#pragma once
// What the images of a pack are, counted: sizes and channels while they are packed, classes before.
// Notes say what a model will make of it, as a set of several sizes, or with a class that nobody
// has an image of, is whole and yet not what its owner meant. One thread; rows in their order, so
// that counts and examples do not depend on the number of threads.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "data/decode/image.h"
#include "data/pack/row_columns.h"

namespace muster::data {

/// Images of one size and colour.
struct ImageKind {
  ImageShape shape;
  std::uint64_t images = 0;
  std::string first;  ///< the source of the first
};

class Census {
 public:
  void Add(const RowColumns& rows);

  /// In the order of their first images; at most kMostKinds.
  const std::vector<ImageKind>& kinds() const { return kinds_; }
  /// Images of kinds beyond those.
  std::uint64_t others() const { return others_; }
  /// On several sizes, and on grey and colour in one set; empty when there is nothing to say.
  std::vector<std::string> Notes() const;

  static constexpr std::size_t kMostKinds = 1000;

 private:
  ImageKind* KindOf(const ImageShape& shape);

  std::vector<ImageKind> kinds_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::size_t> places_;
  std::uint64_t others_ = 0;
};

/// How many images of each class a split has.
struct SplitClasses {
  std::string split;
  std::vector<std::uint64_t> images;
};

/// On classes without images, in the whole set or in one of its splits.
std::vector<std::string> NotesOnClasses(const std::vector<std::string>& names,
                                        const std::vector<SplitClasses>& splits);

}  // namespace muster::data

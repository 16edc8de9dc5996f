#pragma once
// The images below a folder, sorted, found without following a single link: every level is opened
// from the one above by openat with O_NOFOLLOW. Names are kept in one arena, so a million files
// cost their names and 16 bytes each. Immutable once walked.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace muster::data {

struct FileTree {
  struct Folder {
    std::string path;  ///< relative to the root, "" for the root
  };
  struct File {
    std::uint32_t folder = 0;
    std::uint32_t name_length = 0;
    std::uint64_t name_begin = 0;
  };

  std::string root;
  std::vector<Folder> folders;
  std::vector<File> files;  ///< by path: folders and files of a folder in one sorted sequence
  std::string names;
  std::uint64_t ignored = 0;  ///< files that are not named like images, hidden ones not counted
  std::string first_ignored;

  std::string_view NameOf(const File& file) const {
    return std::string_view(names).substr(file.name_begin, file.name_length);
  }
  std::string PathOf(const File& file) const;
};

/// Invalid for a link, a name that is not UTF-8, or more than 32 levels; NotFound without a folder.
Result<FileTree> WalkImages(const std::string& root);

/// Opens a folder of the tree, level by level, following no link below the root.
Result<Fd> OpenFolder(const FileTree& tree, std::uint32_t folder);

}  // namespace muster::data

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
  /// What was passed over, in the order in which it was met, and its first as an example.
  struct Left {
    std::uint64_t count = 0;
    std::string first;
    void Add(const std::string& path) {
      if (count++ == 0) first = path;
    }
  };
  Left ignored;  ///< files that are not named like images
  Left hidden;   ///< images and folders whose names begin with a dot
  Left links;    ///< links to folders, which are not followed
  Left unnamed;  ///< folders whose names are not UTF-8

  std::string_view NameOf(const File& file) const {
    return std::string_view(names).substr(file.name_begin, file.name_length);
  }
  std::string PathOf(const File& file) const;
};

/// Precondition for more than 32 levels; NotFound without a folder. Images that are links, or whose
/// names are not UTF-8, stay in the list: reading them is their error.
Result<FileTree> WalkImages(const std::string& root);

/// A name of any bytes, to be shown: those of a name that is not UTF-8 as "\\xNN".
std::string ShownName(std::string_view name);

/// Opens a folder of the tree, level by level, following no link below the root.
Result<Fd> OpenFolder(const FileTree& tree, std::uint32_t folder);

}  // namespace muster::data

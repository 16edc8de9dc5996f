#include "base/absent.h"

#include <fmt/format.h>

#include <filesystem>

namespace muster {
namespace {

/// The longest part of an absolute path that exists.
std::filesystem::path Existing(std::filesystem::path path) {
  std::error_code ignored;
  while (path.has_relative_path() && !std::filesystem::exists(path, ignored)) {
    path = path.parent_path();
  }
  return path;
}

}  // namespace

std::string AbsolutePath(const std::string& path) {
  std::error_code gone;
  const auto absolute = std::filesystem::absolute(path, gone);
  return gone ? path : absolute.lexically_normal().string();
}

Error Absent(std::string_view what, const std::string& path, std::string_view hint) {
  // An empty name would be told as the working folder, which is there.
  if (path.empty())
    return {Code::kInvalid, fmt::format("the {} has no name", what), std::string(hint)};
  const std::string absolute = AbsolutePath(path);
  std::filesystem::path place = absolute;
  if (!place.has_filename()) place = place.parent_path();  // "nosuch/"
  const std::filesystem::path there = Existing(place);
  const bool parent = place.parent_path() == there;
  return {Code::kNotFound,
          fmt::format("there is no {} at {}{}", what, absolute,
                      parent ? "" : fmt::format(", of that only {} exists", there.string())),
          std::string(hint)};
}

}  // namespace muster

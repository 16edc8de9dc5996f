#include "base/absent.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/near_miss.h"

namespace muster {
namespace {

constexpr std::size_t kMostEntries = 10'000;

/// The longest part of an absolute path that exists.
std::filesystem::path Existing(std::filesystem::path path) {
  std::error_code ignored;
  while (path.has_relative_path() && !std::filesystem::exists(path, ignored)) {
    path = path.parent_path();
  }
  return path;
}

/// ": did you mean train.py?", of what is beside it; "" when nothing there is called nearly so.
std::string DidYouMean(const std::filesystem::path& place) {
  const std::string name = place.filename().string();
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(place.parent_path(), error);
  for (; !error && entry != std::filesystem::directory_iterator() && names.size() < kMostEntries;
       entry.increment(error)) {
    std::string beside = entry->path().filename().string();
    if (beside.starts_with('.') == name.starts_with('.')) names.push_back(std::move(beside));
  }
  // A folder is listed in no order.
  std::ranges::sort(names);
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto meant = NearMiss(name, known);
  return meant ? fmt::format(": did you mean {}?", *meant) : "";
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
          fmt::format(
              "there is no {} at {}{}", what, absolute,
              parent ? DidYouMean(place) : fmt::format(", of that only {} exists", there.string())),
          std::string(hint)};
}

}  // namespace muster

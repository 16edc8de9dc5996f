#include "data/pack/replaceable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace muster::data {
namespace {

constexpr std::size_t kMostNamed = 3;
constexpr std::string_view kDict = "dataset_dict.json";

/// What stands in the folder of one split: its shards, two files of JSON, and our own folder.
bool IsOfSplit(const std::string& name) {
  return name == "state.json" || name == "dataset_info.json" || name == "_muster" ||
         name.ends_with(".arrow");
}

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The names in the folder of a split that no dataset has, with `prefix` in front. A folder without
/// any of a split's own files is strange as a whole.
std::vector<std::string> StrangersInSplit(const std::vector<std::string>& names,
                                          const std::string& prefix) {
  std::vector<std::string> strangers;
  for (const std::string& name : names) {
    if (!IsOfSplit(name)) strangers.push_back(prefix + name);
  }
  const bool ours = Has(names, "state.json") && Has(names, "dataset_info.json");
  if (strangers.empty() && !ours && !names.empty()) strangers.push_back(prefix + names.front());
  return strangers;
}

Result<std::vector<std::string>> StrangersIn(FileSystem& files, const std::string& folder) {
  const std::vector<std::string> names = MUSTER_TRY(files.List(folder));
  if (!Has(names, kDict)) return StrangersInSplit(names, "");
  std::vector<std::string> strangers;
  for (const std::string& name : names) {
    if (name == kDict) continue;
    const auto inside = files.List(folder + "/" + name);
    const auto found = inside ? StrangersInSplit(*inside, name + "/") : std::vector{name};
    strangers.insert(strangers.end(), found.begin(), found.end());
  }
  return strangers;
}

/// What a pack that was killed leaves behind: shards and files of JSON under their final names or
/// with an ending of their own, for one split or in a folder for each.
bool IsOfLeftover(const std::string& name) {
  return IsOfSplit(name) || name == kDict || name.ends_with(".part") || name.ends_with(".tmp");
}

Result<std::vector<std::string>> StrangersInLeftover(FileSystem& files, const std::string& folder) {
  std::vector<std::string> strangers;
  for (const std::string& name : MUSTER_TRY(files.List(folder))) {
    if (IsOfLeftover(name)) continue;
    const auto inside = files.List(folder + "/" + name);
    if (!inside || !std::ranges::all_of(*inside, IsOfLeftover)) strangers.push_back(name);
  }
  return strangers;
}

Status Refuse(std::vector<std::string> strangers, std::string_view folder, std::string_view kept) {
  if (strangers.empty()) return Ok();
  const std::size_t more = strangers.size() - std::min(strangers.size(), kMostNamed);
  strangers.resize(std::min(strangers.size(), kMostNamed));
  return Error(Code::kPrecondition,
               fmt::format("{} holds what is not a dataset's: {}{}; it is not {}, and nothing was "
                           "changed",
                           folder, fmt::join(strangers, ", "),
                           more > 0 ? fmt::format(" and {} more", more) : "", kept),
               "choose another folder, or move that away yourself");
}

/// True when `path` is `folder` or lies below it; both without links and dots.
bool IsWithin(const std::filesystem::path& path, const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

}  // namespace

Status CheckReplaceable(FileSystem& files, const std::string& folder) {
  auto strangers = StrangersIn(files, folder);
  if (!strangers && strangers.error().code() == Code::kNotFound && files.Exists(folder)) {
    return Error(Code::kPrecondition,
                 folder + " is not a folder; it is not replaced, and nothing was changed",
                 "choose another name, or move it away yourself");
  }
  if (!strangers) return std::move(strangers).error();
  return Refuse(*std::move(strangers), folder, "replaced");
}

Status CheckLeftover(FileSystem& files, const std::string& folder) {
  return Refuse(MUSTER_TRY(StrangersInLeftover(files, folder)), folder, "removed");
}

Status CheckApart(const std::string& input, const std::string& output) {
  std::error_code failed;
  const auto from = std::filesystem::weakly_canonical(input, failed);
  if (failed) return ErrnoError("follow " + input, failed.value());
  const auto to = std::filesystem::weakly_canonical(output, failed);
  if (failed) return ErrnoError("follow " + output, failed.value());
  if (!IsWithin(from, to) && !IsWithin(to, from)) return Ok();
  return Error(
      Code::kInvalid,
      from == to ? fmt::format("{} is both the input and the output", input)
                 : fmt::format("the input {} and the output {} lie in one another", input, output),
      "choose an output folder beside the input; nothing was changed");
}

}  // namespace muster::data

#include "data/layout/find_splits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/absent.h"
#include "base/file_system.h"
#include "data/layout/hf_check.h"

namespace muster::data {
namespace {

constexpr Bytes kMaxJson = 64_MiB;
constexpr std::string_view kDict = "/dataset_dict.json";
constexpr std::string_view kState = "/state.json";
constexpr std::size_t kMostLookedInto = 100;

/// The first folder in it that is a dataset, for who named the one above.
std::string DatasetIn(const std::string& folder, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < std::min(names.size(), kMostLookedInto); ++i) {
    const std::string below = folder + "/" + names[i];
    for (const std::string_view mark : {kDict, kState}) {
      if (PosixFiles().Exists(below + std::string(mark))) return below;
    }
  }
  return {};
}

/// A message that a user can act on when there is no state.json.
Error NotASplit(const std::string& folder) {
  struct stat info{};
  if (::stat(folder.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
    return Error(Code::kNotFound, fmt::format("{} is a file; a dataset is a folder", folder),
                 "name the folder that muster data pack made");
  }
  const auto names = PosixFiles().List(folder);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (name.ends_with(".arrow") || name.ends_with(".part")) {
      return Error(
          Code::kPrecondition,
          fmt::format("{} is an unfinished dataset: it has {} but no state.json", folder, name),
          "pack it again; a finished set gets its state.json last");
    }
  }
  const std::string inside = DatasetIn(folder, *names);
  return Error(Code::kNotFound,
               fmt::format("{} is not a dataset: {} has no state.json and no dataset_dict.json",
                           folder, AbsolutePath(folder)),
               inside.empty()
                   ? fmt::format("if it holds images, pack them: muster data pack {} OUT", folder)
                   : "did you mean " + inside + "?");
}

/// Whether something is left to look at where state.json cannot be read.
Result<bool> IsSplitOfSorts(const std::string& folder) {
  return MUSTER_TRY(IsThere(folder + std::string(kState))) ||
         MUSTER_TRY(IsThere(folder + "/_muster/manifest"));
}

void Prepend(std::vector<SetFinding> findings, SplitPlace& place) {
  place.findings.insert(place.findings.begin(), std::make_move_iterator(findings.begin()),
                        std::make_move_iterator(findings.end()));
}

/// What else is wrong with how the set names its splits.
Status LookAround(const std::string& path, const std::string& text,
                  std::vector<SplitPlace>& places) {
  const std::string dict = path + std::string(kDict);
  std::vector<SetFinding> findings;
  for (const std::string& what : CheckDatasetDictJson(text)) {
    findings.push_back({dict, Error(Code::kDataLoss, what)});
  }
  if (MUSTER_TRY(IsThere(path + std::string(kState))) &&
      MUSTER_TRY(IsThere(path + "/dataset_info.json"))) {
    findings.push_back(
        {path + std::string(kState),
         Error(Code::kDataLoss, "Hugging Face datasets opens this split instead of those listed")});
  }
  // What may not be looked at beside the splits that are listed is no reason to look at none.
  for (const std::string& name : PosixFiles().List(path).value_or(std::vector<std::string>())) {
    const bool listed = std::ranges::find(places, name, &SplitPlace::name) != places.end();
    if (listed || !IsThere(path + "/" + name + "/_muster/manifest").value_or(false)) continue;
    places.push_back(
        {name,
         path + "/" + name,
         {{dict, Error(Code::kDataLoss, fmt::format("it does not list the split '{}'", name))}}});
  }
  if (findings.empty()) return Ok();
  if (places.empty()) return std::move(findings[0].error).Within(findings[0].file);
  Prepend(std::move(findings), places.front());
  return Ok();
}

/// Of a list of no splits: whether there are none.
Status HoldsNone(const std::string& path) {
  const auto names = PosixFiles().List(path).value_or(std::vector<std::string>());
  const bool itself = MUSTER_TRY(IsThere(path + std::string(kState)));
  const std::string inside = itself ? path : DatasetIn(path, names);
  if (inside.empty()) return Ok();
  return Error(Code::kDataLoss,
               fmt::format("{}{} lists no splits, and {} is one", path, kDict, inside),
               "copy or pack the set again; a split's own folder is a dataset too");
}

}  // namespace

Result<bool> IsThere(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return ErrnoError("open " + path, errno);
}

Result<std::string> ReadSetFile(const std::string& path) {
  return OfContent(PosixFiles().ReadAll(path, kMaxJson), Code::kDataLoss);
}

Result<State> ReadState(const std::string& folder) {
  const std::string path = folder + std::string(kState);
  if (!MUSTER_TRY(IsThere(path))) return NotASplit(folder);
  State state = MUSTER_TRY(Within(path, ParseState(MUSTER_TRY(ReadSetFile(path)))));
  if (state.files.empty()) return Error(Code::kDataLoss, path + " lists no data files");
  return state;
}

Result<std::vector<SplitPlace>> FindSplits(const std::string& path, OnDamage damage) {
  if (!MUSTER_TRY(IsThere(path))) {
    return Absent("dataset", path, "look at the name; 'muster data pack INPUT OUT' makes one");
  }
  const std::string dict = path + std::string(kDict);
  std::vector<SplitPlace> places;
  if (MUSTER_TRY(IsThere(dict))) {
    const std::string text = MUSTER_TRY(ReadSetFile(dict));
    auto splits = Within(dict, ParseDatasetDict(text));
    if (!splits) {
      return std::move(splits.error())
          .Hint(
              "copy or pack the set again; a split's own folder is a "
              "dataset too");
    }
    for (const std::string& split : *splits) places.push_back({split, path + "/" + split, {}});
    if (damage == OnDamage::kKeep) MUSTER_TRY(LookAround(path, text, places));
    if (places.empty()) MUSTER_TRY(HoldsNone(path));
    return places;
  }
  const auto state = ReadState(path);
  const bool go_on = damage == OnDamage::kKeep && MUSTER_TRY(IsSplitOfSorts(path));
  if (!state && !go_on) return state.error();
  places.push_back({state ? state->split : "", path, {}});
  return places;
}

Result<std::vector<SplitPlace>> SplitsNamed(const std::string& path, const std::string& wanted,
                                            std::vector<SplitPlace> places) {
  std::vector<std::string> known;
  for (const SplitPlace& place : places) {
    known.push_back(place.name.empty() ? "one without a name" : place.name);
  }
  if (wanted.empty()) return places;
  const auto found = std::ranges::find(places, wanted, &SplitPlace::name);
  if (found == places.end()) {
    return Error(Code::kNotFound, fmt::format("{} has no split '{}'", path, wanted),
                 known.empty() ? "it has none" : fmt::format("it has: {}", fmt::join(known, ", ")));
  }
  std::vector<SetFinding> of_set;
  for (SplitPlace& place : places) {
    std::ranges::move(place.findings, std::back_inserter(of_set));
  }
  found->findings = std::move(of_set);
  return std::vector<SplitPlace>{std::move(*found)};
}

}  // namespace muster::data

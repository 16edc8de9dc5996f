#include "profile/live/newest_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/absent.h"
#include "profile/report/run_files.h"

namespace muster::profile {
namespace {

constexpr std::size_t kMostFolders = 100'000;
/// A run that goes on and was begun so many runs ago is to be named.
constexpr std::size_t kMostLocks = 200;

struct Begun {
  WallTime at;
  std::string name;
};

std::vector<Begun> RunsIn(const RunFiles& parent) {
  std::vector<Begun> runs;
  std::error_code error;
  std::filesystem::directory_iterator entry(parent.folder(), error);
  std::size_t looked = 0;
  for (; !error && entry != std::filesystem::directory_iterator() && looked < kMostFolders;
       entry.increment(error), ++looked) {
    const std::string name = entry->path().filename().string();
    if (const auto sight = parent.Look(name + "/run.json")) runs.push_back({sight->written, name});
  }
  std::ranges::sort(runs, [](const Begun& a, const Begun& b) {
    return a.at != b.at ? a.at > b.at : a.name > b.name;
  });
  return runs;
}

}  // namespace

Result<std::string> NewestRun(const std::string& parent) {
  const auto nothing = [&] {
    return Error(Code::kNotFound, fmt::format("there is no run in {}", AbsolutePath(parent)),
                 "give the folder that 'muster run' named when it began");
  };
  const auto files = RunFiles::Open(parent);
  if (!files) return nothing();
  const auto runs = RunsIn(*files);
  if (runs.empty()) return nothing();
  for (std::size_t i = 0; i < std::min(runs.size(), kMostLocks); ++i) {
    const std::string folder = parent + "/" + runs[i].name;
    const auto run = RunFiles::Open(folder);
    if (run && run->LockHeld()) return folder;
  }
  return parent + "/" + runs.front().name;
}

}  // namespace muster::profile

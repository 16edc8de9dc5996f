#include "profile/report/what_else.h"

#include <fmt/format.h>

#include <filesystem>
#include <initializer_list>

#include "profile/report/go_on.h"

namespace muster::profile {
namespace {

constexpr std::size_t kMostEntries = 10'000;

bool HasAny(const RunFiles& files, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (files.ReadTail(name, Bytes{1})) return true;
  }
  return false;
}

/// The folder below that holds the newest run, by the time of its run.json; "" without one.
std::string NewestRunIn(const std::string& folder) {
  std::string newest;
  std::filesystem::file_time_type begun{};
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  std::size_t looked = 0;
  for (; !error && entry != std::filesystem::directory_iterator() && looked < kMostEntries;
       entry.increment(error), ++looked) {
    std::error_code absent;
    const auto time = std::filesystem::last_write_time(entry->path() / "run.json", absent);
    if (absent || (!newest.empty() && time <= begun)) continue;
    newest = entry->path().string();
    begun = time;
  }
  return newest;
}

}  // namespace

std::string WhatElse(const RunFiles& files) {
  const std::string& folder = files.folder();
  const auto tell = [](std::string_view what, std::string_view verb, const std::string& path) {
    return fmt::format("{}: muster {} {}", what, verb, ShellWord(path));
  };
  if (HasAny(files, {"manifest.crc32c"})) return tell("it is a checkpoint", "ckpt show", folder);
  if (HasAny(files, {"latest"})) return tell("it holds checkpoints", "ckpt ls", folder);
  if (HasAny(files, {"dataset_dict.json", "dataset_info.json", "_muster/manifest"})) {
    return tell("it is a dataset", "data ls", folder);
  }
  if (HasAny(files, {"job.yaml"})) {
    return tell("it holds a job that did not begin", "run", folder + "/job.yaml");
  }
  const std::string run = NewestRunIn(folder);
  if (!run.empty()) return tell("it holds runs, the newest is here", "show", run);
  return "give the folder that 'muster run' named; nothing was changed";
}

}  // namespace muster::profile

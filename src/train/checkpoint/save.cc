#include "train/checkpoint/save.h"

#include <algorithm>
#include <charconv>

#include "base/crc32c.h"
#include "base/durable.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/open.h"
#include "train/checkpoint/rank_file.h"

namespace muster::checkpoint {
namespace {

struct Paths {
  std::string temporary;
  std::string final;
};

Paths PathsOf(const SaveRequest& request) {
  const Manifest& manifest = request.manifest;
  return {
      .temporary =
          request.folder + "/" + TemporaryName(manifest.step, manifest.generation, request.run),
      .final = request.folder + "/" + StepName(manifest.step),
  };
}

std::string What(const SaveRequest& request) {
  return "save the checkpoint of step " + std::to_string(request.manifest.step);
}

Status Elsewhere(const SaveRequest& request, std::string_view part) {
  return Error(Code::kCancelled,
               What(request) + ": another rank could not " + std::string(part) +
                   "; nothing was committed, the previous checkpoint stands",
               "its own message says why");
}

/// Every rank comes here whether it succeeded or not; the ranks leave with one opinion.
Status AgreeOn(Agreement& agreement, const Status& mine, const SaveRequest& request,
               std::string_view part) {
  const Result<bool> all = agreement.AllOk(mine.has_value());
  if (!mine) return Error(mine.error()).Within(What(request));
  if (!all) return Error(all.error()).Within(What(request));
  return *all ? Ok() : Elsewhere(request, part);
}

/// Rank 0: the empty temporary folder.
Status Prepare(FileSystem& files, const SaveRequest& request, const Paths& paths) {
  if (request.manifest.step > kMostStep)
    return Error(Code::kInvalid, "step " + std::to_string(request.manifest.step) + " is too large");
  if (request.rank.value() >= request.manifest.world)
    return Error(Code::kInvalid, "rank 0 is not below the world");
  if (request.run != RunTag(request.run))
    return Error(Code::kInvalid, "the run's name '" + request.run + "' is no part of a file name");
  MUSTER_TRY(Within("index", Validate(request.manifest.index)));
  MUSTER_TRY(CheckRunFolder(files, request.generation_file));
  MUSTER_TRY(MakeFolder(files, request.folder));
  if (!request.replace_existing && files.Exists(paths.final))
    return Error(Code::kAlreadyExists, paths.final + " exists already",
                 "remove it, or save with replacement");
  // Ours from an attempt that failed: the generation is in its name.
  MUSTER_TRY(files.RemoveAll(paths.temporary));
  return files.MakeDirectory(paths.temporary, 0755);
}

Status CheckGeneration(FileSystem& files, const SaveRequest& request) {
  if (request.generation_file.empty()) return Ok();
  const std::string text = MUSTER_TRY(files.ReadAll(request.generation_file, {.count = 64}));
  std::uint64_t current = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), current);
  const bool whole =
      error == std::errc() && std::string_view(end, text.data() + text.size()) == "\n";
  if (!whole)
    return Error(Code::kDataLoss, request.generation_file + " holds no generation number");
  const std::uint64_t own = request.manifest.generation.value();
  if (current != own)
    return Error(Code::kConflict, "generation " + std::to_string(current) +
                                      " has taken over from generation " + std::to_string(own) +
                                      "; nothing was committed");
  return Ok();
}

/// Rank 0: the manifest over every rank's file, inside the temporary folder, durable.
Status WriteManifestInto(FileSystem& files, const SaveRequest& request, const Paths& paths) {
  Manifest manifest = request.manifest;
  manifest.files.clear();
  for (std::uint32_t rank = 0; rank < manifest.world; ++rank) {
    const std::string path = paths.temporary + "/" + RankFileName(Rank(rank), manifest.world);
    manifest.files.push_back(MUSTER_TRY(DescribeRankFile(path, manifest.index)));
  }
  MUSTER_TRY(RequireComplete(manifest));
  const std::string text = MUSTER_TRY(WriteManifest(manifest));
  // What cannot be read back must not be committed; it costs less than a millisecond.
  MUSTER_TRY(ParseManifest(text));
  const std::string folder = paths.temporary + "/";
  MUSTER_TRY(WriteNew(files, folder + std::string(kManifestName), AsBytes(text)));
  const std::string sum = SumText(Crc32c(AsBytes(text)));
  MUSTER_TRY(WriteNew(files, folder + std::string(kManifestSumName), AsBytes(sum)));
  return files.SyncDirectory(paths.temporary);
}

/// Gives the folder its final name, the commit itself. When the name cannot be made durable it is
/// taken back, so that an error always means: not committed.
Status Publish(FileSystem& files, const SaveRequest& request, const Paths& paths) {
  const bool replaces = request.replace_existing && files.Exists(paths.final);
  MUSTER_TRY(replaces ? files.Exchange(paths.temporary, paths.final)
                      : files.RenameNew(paths.temporary, paths.final));
  Status durable = files.SyncDirectory(request.folder);
  if (durable) return Ok();
  const Status undone = replaces ? files.Exchange(paths.temporary, paths.final)
                                 : files.RenameNew(paths.final, paths.temporary);
  if (undone) return durable;
  return Error(durable.error())
      .Within("the checkpoint is in place as " + paths.final +
              ", but its name may not survive a power cut");
}

/// A folder is renamed before it is emptied: half of a checkpoint never has a final name.
Status RemoveCheckpoint(FileSystem& files, const SaveRequest& request, std::uint64_t step) {
  const std::string doomed =
      request.folder + "/" + TemporaryName(step, request.manifest.generation, request.run);
  MUSTER_TRY(files.RemoveAll(doomed));
  MUSTER_TRY(files.Rename(request.folder + "/" + StepName(step), doomed));
  return files.RemoveAll(doomed);
}

/// Those that a run could continue from, oldest first: the one just written among them.
Result<std::vector<CheckpointInfo>> Usable(FileSystem& files, const SaveRequest& request) {
  auto all = MUSTER_TRY(ListCheckpoints(files, request.folder));
  std::erase_if(all, [&](const CheckpointInfo& info) {
    return info.step != request.manifest.step &&
           std::ranges::find(request.damaged, info.step) != request.damaged.end();
  });
  return all;
}

Status Prune(FileSystem& files, const SaveRequest& request) {
  if (request.keep_last == 0) return Ok();
  const auto all = MUSTER_TRY(Usable(files, request));
  for (std::size_t i = 0; i + request.keep_last < all.size(); ++i) {
    if (all[i].step == request.manifest.step) continue;  // just made, below others that are newer
    MUSTER_TRY(RemoveCheckpoint(files, request, all[i].step));
  }
  return Ok();
}

/// Rank 0, after the commit: nothing here can undo it, so failures are notes.
std::vector<std::string> TidyUp(FileSystem& files, const SaveRequest& request, const Paths& paths) {
  std::vector<std::string> notes;
  const auto note = [&](const Status& status) {
    if (!status) notes.push_back(status.error().message());
  };
  const std::string latest = request.folder + "/" + std::string(kLatestName);
  const auto all = Usable(files, request);
  const std::string name = muster::NameOf(all && !all->empty() ? all->back().path : paths.final);
  note(Within("point 'latest' at " + name, WriteDurably(files, latest, AsBytes(name + "\n"))));
  if (request.replace_existing)
    note(Within("remove the replaced checkpoint", files.RemoveAll(paths.temporary)));
  note(Within("remove old checkpoints", Prune(files, request)));
  return notes;
}

Status Commit(FileSystem& files, const SaveRequest& request, const Paths& paths) {
  MUSTER_TRY(WriteManifestInto(files, request, paths));
  // Last, so that the window in which a new generation could begin unseen is one rename wide.
  MUSTER_TRY(CheckGeneration(files, request));
  return Publish(files, request, paths);
}

/// The last agreement. Only rank 0 can have failed here, and what it committed stays committed
/// whether or not the others live to hear of it.
Status AgreeOnCommit(Agreement& agreement, const Status& committed, const SaveRequest& request,
                     SaveReport& report) {
  const Result<bool> all = agreement.AllOk(committed.has_value());
  if (!committed) return Error(committed.error()).Within(What(request));
  if (request.rank == Rank(0)) {
    if (!all) report.notes.push_back("tell the other ranks: " + all.error().message());
    return Ok();
  }
  if (!all)
    return Error(all.error())
        .Within(What(request) + ": rank 0 could not be asked whether it was committed");
  return *all ? Ok() : Elsewhere(request, "commit");
}

/// Best effort: what stays is removed by the next attempt or by CleanLeftovers.
void Discard(FileSystem& files, const SaveRequest& request, const Paths& paths) {
  if (request.rank == Rank(0)) [[maybe_unused]]
    const Status removed = files.RemoveAll(paths.temporary);
}

}  // namespace

Result<SaveReport> Save(FileSystem& files, Agreement& agreement, const SaveRequest& request) {
  const Paths paths = PathsOf(request);
  const bool leads = request.rank == Rank(0);
  SaveReport report{.path = paths.final};

  const Status prepared = leads ? Prepare(files, request, paths) : Ok();
  MUSTER_TRY(AgreeOn(agreement, prepared, request, "prepare the folder"));

  const std::string own =
      paths.temporary + "/" + RankFileName(request.rank, request.manifest.world);
  const Result<std::uint64_t> written =
      WriteRankFile(files, own, request.manifest.index, request.slices);
  const Status mine = written ? Ok() : Status(Error(written.error()));
  if (const Status all = AgreeOn(agreement, mine, request, "write its part"); !all) {
    Discard(files, request, paths);
    return all.error();
  }
  report.bytes = *written;

  const Status committed = leads ? Commit(files, request, paths) : Ok();
  if (!committed) Discard(files, request, paths);
  if (committed && leads) report.notes = TidyUp(files, request, paths);
  MUSTER_TRY(AgreeOnCommit(agreement, committed, request, report));
  return report;
}

Status MakeFolder(FileSystem& files, const std::string& folder) {
  if (files.Exists(folder)) return Ok();
  const std::string parent = ParentOf(folder);
  if (parent != folder) MUSTER_TRY(MakeFolder(files, parent));
  Status made = files.MakeDirectory(folder, 0755);
  if (!made && made.error().code() != Code::kAlreadyExists) return made;
  return files.SyncDirectory(parent);
}

Status CheckRunFolder(FileSystem& files, const std::string& generation_file) {
  if (generation_file.empty() || files.Exists(generation_file)) return Ok();
  return Error(Code::kNotFound,
               "the run folder " + ParentOf(generation_file) + " was moved or removed",
               "nothing was made in its place; what was saved before is where it went");
}

Status ProbeFolder(FileSystem& files, const std::string& folder) {
  const std::string probe = folder + "/" + std::string(kProbeName);
  constexpr std::string_view kContent = "muster was here\n";
  MUSTER_TRY(files.RemoveAll(probe));
  MUSTER_TRY(files.MakeDirectory(probe, 0755));
  Status written = WriteNew(files, probe + "/file", AsBytes(kContent));
  MUSTER_TRY(files.RemoveAll(probe));
  return written;
}

Status CleanLeftovers(FileSystem& files, const std::string& folder) {
  if (!files.Exists(folder)) return Ok();
  for (const std::string& name : MUSTER_TRY(files.List(folder))) {
    if (IsTemporaryName(name) || name == std::string(kLatestName) + ".tmp" || name == kProbeName)
      MUSTER_TRY(files.RemoveAll(folder + "/" + name));
  }
  return Ok();
}

}  // namespace muster::checkpoint

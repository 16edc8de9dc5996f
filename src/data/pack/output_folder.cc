#include "data/pack/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include "base/durable.h"
#include "base/log.h"
#include "data/pack/replaceable.h"

namespace muster::data {
namespace {

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool HasDots(const std::string& path) {
  const std::filesystem::path parts(path);
  return std::ranges::any_of(std::next(parts.begin(), parts.empty() ? 0 : 1), parts.end(),
                             [](const auto& part) { return part == "." || part == ".."; });
}

/// A link leads to the folder that is meant, so that the link itself stays; so do dots: what is
/// built is beside that folder, and "no/.." needs no folder "no".
Result<std::string> PlaceOf(const std::string& path) {
  std::error_code failed;
  if (!HasDots(path) && !std::filesystem::is_symlink(path, failed)) return WithoutSlashes(path);
  const auto target = std::filesystem::weakly_canonical(path, failed);
  if (failed) return ErrnoError("follow " + path, failed.value());
  return target.string();
}

Status MakeParents(FileSystem& files, const std::string& path) {
  const std::string parent = ParentOf(path);
  if (parent == "." || parent == "/" || files.Exists(parent)) return Ok();
  MUSTER_TRY(MakeParents(files, parent));
  return files.MakeDirectory(parent, 0755);
}

Error Busy(const std::string& folder) {
  return Error(Code::kConflict, fmt::format("another pack is writing {}", folder),
               "wait for it, or choose another output folder");
}

/// Whether the open folder is the one that has this name now.
bool Holds(const Fd& fd, const std::string& folder) {
  struct stat open{};
  struct stat named{};
  return ::fstat(fd.get(), &open) == 0 && ::lstat(folder.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

Result<Fd> Lock(const std::string& folder) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError("open " + folder, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return ErrnoError("lock " + folder, errno);
  return Busy(folder);
}

}  // namespace

OutputFolder::OutputFolder(FileSystem& files, std::string place, const Options& options)
    : files_(files),
      place_(std::move(place)),
      building_(ParentOf(place_) + "/." + NameOf(place_) + ".muster-part"),
      options_(options) {}

OutputFolder::~OutputFolder() {
  if (!owned_) return;
  const Status removed = files_.RemoveAll(building_);
  if (!removed) {
    log::Warn("unfinished output stays behind",
              {{"path", building_}, {"error", removed.error().message()}});
  }
}

Status OutputFolder::CheckPlace() const {
  if (!files_.Exists(place_)) return Ok();
  if (!options_.replace) {
    return Error(Code::kAlreadyExists, place_ + " exists already, and nothing was changed",
                 "choose another folder, or give --replace to exchange it at the end");
  }
  return CheckReplaceable(files_, place_);
}

Result<std::unique_ptr<OutputFolder>> OutputFolder::Begin(FileSystem& files,
                                                          const std::string& place,
                                                          const Options& options) {
  if (place.empty()) return Error(Code::kInvalid, "the output folder has an empty name");
  std::unique_ptr<OutputFolder> folder(
      new OutputFolder(files, MUSTER_TRY(PlaceOf(place)), options));
  MUSTER_TRY(folder->CheckPlace());
  MUSTER_TRY(MakeParents(files, folder->place_));
  if (files.Exists(folder->building_)) MUSTER_TRY(folder->ClearLeftover());
  MUSTER_TRY(files.MakeDirectory(folder->building_, 0755));
  // Between the two calls another pack may take the new folder for one that was left behind. It is
  // ours to remove only when what we locked still has the name.
  folder->lock_ = MUSTER_TRY(Lock(folder->building_));
  if (!Holds(folder->lock_, folder->building_)) return Busy(folder->building_);
  folder->owned_ = true;
  return folder;
}

/// Left by a process that was killed, or by one that might not remove an old set, unless somebody
/// still holds it.
Status OutputFolder::ClearLeftover() {
  constexpr std::string_view kHint =
      "move it away or remove it yourself, or choose another output folder; nothing was changed";
  struct stat info{};
  if (::lstat(building_.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
    return Error(Code::kPrecondition,
                 building_ + " is in the way: a pack builds there, and it is not a folder",
                 std::string(kHint));
  }
  const Fd lock = MUSTER_TRY(Lock(building_));
  MUSTER_TRY(CheckLeftover(files_, building_));
  const Status removed = files_.RemoveAll(building_);
  if (removed) return Ok();
  return Error(removed.error().code(),
               fmt::format("{}, which an earlier pack left, cannot be removed: {}", building_,
                           removed.error().message()),
               std::string(kHint));
}

Result<std::string> OutputFolder::Commit() {
  MUSTER_TRY(CheckPlace());
  // After an exchange the old set has the hidden name. Locked, no other pack takes it for one that
  // was left behind and builds at that name while we still remove it.
  if (files_.Exists(place_)) {
    auto old = Lock(place_);
    if (!old && old.error().code() == Code::kConflict) return std::move(old.error());
    if (old) old_lock_ = *std::move(old);
  }
  const Replaced replaced = MUSTER_TRY(Swap());
  owned_ = false;
  if (replaced.left.empty()) return std::string();
  return fmt::format(
      "{} is the new dataset; the old one could not be removed and stays as {} until you remove "
      "it: {}",
      place_, replaced.left, replaced.why);
}

Result<Replaced> OutputFolder::Swap() {
  if (options_.durable) MUSTER_TRY(files_.SyncDirectory(building_));
  if (options_.durable && options_.replace) return CommitReplace(files_, building_, place_);
  if (options_.durable) {
    MUSTER_TRY(CommitRename(files_, building_, place_));
  } else if (!files_.Exists(place_)) {
    MUSTER_TRY(files_.RenameNew(building_, place_));
  } else {
    MUSTER_TRY(files_.Exchange(building_, place_));
    const Status removed = files_.RemoveAll(building_);
    if (!removed) return Replaced{.left = building_, .why = removed.error().message()};
  }
  return Replaced{};
}

}  // namespace muster::data

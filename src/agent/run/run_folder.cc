#include "agent/run/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "agent/run/claim.h"
#include "base/durable.h"
#include "base/host_name.h"

namespace muster::agent {
namespace {

using Json = nlohmann::json;

/// Makes it when it is missing; its name survives a power cut then.
Status MakeFolder(FileSystem& files, const std::string& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) == 0) return files.SyncDirectory(ParentOf(path));
  if (errno != EEXIST) return ErrnoError("create folder " + path, errno);
  return Ok();
}

/// Below what is there, "no/.." is no folder of its own.
std::string Plain(const std::string& path) {
  std::error_code unknown;
  const auto plain = std::filesystem::weakly_canonical(path, unknown);
  return unknown || plain.empty() ? path : plain.string();
}

Status MakeParents(FileSystem& files, const std::string& path) {
  const std::string parent = ParentOf(path);
  if (parent == path || parent == "." || parent == "/") return Ok();
  if (::access(parent.c_str(), F_OK) == 0) return Ok();
  MUSTER_TRY(MakeParents(files, parent));
  return MakeFolder(files, parent, 0755);
}

/// A folder inside that of the run. One that is there already was left by an attempt that did not
/// get as far as run.json; a link in its place would lead the records elsewhere.
Status MakeInside(FileSystem& files, const std::string& path) {
  MUSTER_TRY(MakeFolder(files, path, 0700));
  struct stat info{};
  if (::lstat(path.c_str(), &info) < 0) return ErrnoError("look at " + path, errno);
  if (!S_ISDIR(info.st_mode)) return Error(Code::kInvalid, path + " is not a folder");
  return Ok();
}

Result<std::string> Absolute(const std::string& path) {
  std::array<char, PATH_MAX> real{};
  if (::realpath(path.c_str(), real.data()) == nullptr) return ErrnoError("resolve " + path, errno);
  return std::string(real.data());
}

/// Before the first folder of a path is made: that the last file in it will have a name that the
/// kernel takes.
Status CheckLength(const std::string& path) {
  constexpr std::size_t kInside = 128;  // of the longest name below a run folder
  std::error_code unknown;
  const std::string absolute = std::filesystem::absolute(path, unknown).string();
  const std::size_t length = std::max(path.size(), absolute.size());
  if (length + kInside > PATH_MAX) {
    return Error(Code::kInvalid,
                 fmt::format("the run folder's path has {} bytes; at most {} are possible", length,
                             PATH_MAX - kInside),
                 "give a shorter --run-dir; nothing was made");
  }
  for (const auto& name : std::filesystem::path(path)) {
    if (name.string().size() <= NAME_MAX) continue;
    return Error(
        Code::kInvalid,
        fmt::format("a folder's name in the run folder's path has {} bytes; at most {} are "
                    "possible",
                    name.string().size(), NAME_MAX),
        "give a shorter --run-dir; nothing was made");
  }
  return Ok();
}

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string FormatFacts(const RunFacts& facts, const Clock& clock, Instant created) {
  Json json = {{"format", "muster-run/1"},
               {"id", facts.id},
               {"name", facts.name},
               {"version", facts.version},
               {"host", HostName()},
               {"pid", ::getpid()},
               {"created_utc", FormatUtc(clock.Wall())},
               {"created_ns", created.time_since_epoch().count()},
               {"ranks", facts.ranks}};
  std::error_code gone;
  if (const auto cwd = std::filesystem::current_path(gone); !gone) json["cwd"] = cwd.string();
  return Dump(json);
}

}  // namespace

Result<RunFolder> RunFolder::Create(FileSystem& files, const std::string& path,
                                    const RunFacts& facts, const Clock& clock) {
  MUSTER_TRY(CheckLength(path));
  const Instant created = clock.Now();
  const std::string text = FormatFacts(facts, clock, created);
  const std::string plain = Plain(path);
  MUSTER_TRY(MakeParents(files, plain));
  // One that was there keeps its mode: it is the user's.
  MUSTER_TRY(Within("run folder", MakeFolder(files, plain, 0700)));
  const std::string absolute = MUSTER_TRY(Absolute(plain));
  Fd here(::open(absolute.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!here.valid()) return ErrnoError("open " + absolute, errno);
  Fd lock = MUSTER_TRY(ClaimFolder(files, {path, absolute}, text, facts.job_yaml));
  RunFolder folder(files, absolute, std::move(here), std::move(lock), text, created);
  for (const char* name : {"steps", "logs", "errors"}) {
    MUSTER_TRY(MakeInside(files, folder.At(name)));
  }
  MUSTER_TRY(folder.Write("job.yaml", facts.job_yaml));
  return folder;
}

Status RunFolder::Begin() { return Write("run.json", facts_); }

Status RunFolder::Write(std::string_view name, std::string_view text, unsigned mode) {
  Status written = WriteDurably(*files_, At(name), AsBytes(text), mode);
  if (written || written.error().code() != Code::kNotFound) return written;
  const std::string now = Now();
  if (now.empty() || now == path_) return written;
  written = WriteDurably(*files_, now + "/" + std::string(name), AsBytes(text), mode);
  if (written) return written;
  return std::move(written.error()).Within("the run folder was moved to " + now);
}

std::string RunFolder::Now() const {
  std::array<char, PATH_MAX> target{};
  const std::string link = fmt::format("/proc/self/fd/{}", here_->get());
  const ssize_t n = ::readlink(link.c_str(), target.data(), target.size() - 1);
  struct stat held{};
  struct stat there{};
  if (n <= 0 || ::fstat(here_->get(), &held) < 0 || ::stat(target.data(), &there) < 0) return {};
  if (held.st_dev != there.st_dev || held.st_ino != there.st_ino) return {};
  return target.data();
}

Status WriteGeneration(FileSystem& files, const std::string& folder, Generation generation) {
  const std::string path = folder + "/generation";
  const std::string text = fmt::format("{}\n", generation.value());
  Status written = WriteDurably(files, path, AsBytes(text), 0644);
  if (written || written.error().code() != Code::kExhausted) return written;
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return written;
  // The number only grows, so the new text is never shorter than the old.
  const ssize_t n = ::pwrite(fd.get(), text.data(), text.size(), 0);
  if (n != static_cast<ssize_t>(text.size()) || ::fsync(fd.get()) < 0) return written;
  return Ok();
}

std::string DefaultRunFolder(const std::string& parent, const std::string& name,
                             const std::string& id, WallTime now) {
  const std::string utc = FormatUtc(now);  // 2026-11-29T22:15:30.123Z
  return fmt::format("{}/{}-{}{}{}-{}{}{}-{}", parent, name, utc.substr(0, 4), utc.substr(5, 2),
                     utc.substr(8, 2), utc.substr(11, 2), utc.substr(14, 2), utc.substr(17, 2),
                     id.substr(0, 4));
}

}  // namespace muster::agent

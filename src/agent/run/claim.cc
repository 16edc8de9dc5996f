#include "agent/run/claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "profile/report/go_on.h"

namespace muster::agent {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

constexpr std::size_t kMostNamed = 3;
constexpr const char* kJobSum = "job_crc32c";

/// What a run.json says under `key`, whoever wrote it.
std::string Fact(const Json& run, const char* key) {
  const auto found = run.find(key);
  if (found == run.end() || (!found->is_string() && !found->is_number_integer())) return "?";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

/// The facts of a run of ours, or null.
Json FactsIn(FileSystem& files, const std::string& path) {
  const auto text = files.ReadAll(path, 1_MiB);
  Json run = text ? Json::parse(*text, nullptr, false) : Json();
  const bool ours = run.is_object() && Fact(run, "format").starts_with("muster-run/");
  return ours ? run : Json();
}

/// "run 1a2b3c4d, process 123 on host x since 2026-…", from what the holder wrote into its lock.
std::string Holder(FileSystem& files, const std::string& lock) {
  Json run;
  // Who has only just locked it has not written yet.
  for (int tries = 0; tries < 40 && !run.is_object(); ++tries) {
    if (tries > 0) ::poll(nullptr, 0, 5);
    if (const auto text = files.ReadAll(lock, 64_KiB)) run = Json::parse(*text, nullptr, false);
  }
  if (!run.is_object()) return "another muster run";
  return fmt::format("run {}, process {} on host {} since {}", Fact(run, "id"), Fact(run, "pid"),
                     Fact(run, "host"), Fact(run, "created_utc"));
}

/// O_NONBLOCK: a FIFO of that name must not hang us.
Result<Fd> Lock(FileSystem& files, const std::string& folder) {
  const std::string name = folder + "/lock";
  Fd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd.valid()) return ErrnoError("create " + name, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return ErrnoError("lock " + name, errno);
  return Error(Code::kConflict, folder + " is in use by " + Holder(files, name),
               "wait for it, or give another --run-dir; nothing was changed");
}

Error HoldsAnEarlierRun(FileSystem& files, const NamedFolder& folder, const Json& run) {
  const auto job = files.ReadAll(folder.absolute + "/job.yaml", 1_MiB);
  std::error_code gone;
  const auto cwd = run.find("cwd");
  const std::string started = cwd != run.end() && cwd->is_string() ? cwd->get<std::string>() : "";
  const bool here = started == std::filesystem::current_path(gone).string();
  const std::string from = here ? std::string() : started;
  return {Code::kAlreadyExists, folder.absolute + " holds an earlier run",
          fmt::format("nothing was changed; give another --run-dir, or go on with its job: {}",
                      profile::CommandToGoOn(from.empty() ? folder.given : folder.absolute,
                                             job ? *job : "", from))};
}

Error HoldsOthersFiles(const NamedFolder& folder, Names strangers) {
  const std::size_t more = strangers.size() - std::min(strangers.size(), kMostNamed);
  strangers.resize(strangers.size() - more);
  return {
      Code::kAlreadyExists,
      fmt::format("{} holds what is not of a run: {}{}", folder.absolute,
                  fmt::join(strangers, ", "), more > 0 ? fmt::format(" and {} more", more) : ""),
      "nothing was changed; give a folder that is new or empty as --run-dir"};
}

bool IsFolder(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// A log that the keeper made before its worker came.
bool IsLog(const std::string& name) {
  return name.starts_with("gen-") && (name.ends_with(".log") || name.ends_with(".idx"));
}

/// What is in a folder that a run makes in its own before it begins.
bool IsOursInside(FileSystem& files, const std::string& path, bool logs) {
  const auto names = IsFolder(path) ? files.List(path) : Result<Names>(Names{"?"});
  return names && std::ranges::all_of(*names, [&](const std::string& name) {
           if (!logs) return false;
           if (name == "zygote.log") return true;
           const auto inside = files.List(path + "/" + name);
           return name.starts_with("rank-") && inside && std::ranges::all_of(*inside, IsLog);
         });
}

/// The attempt that wrote the lock wrote this, too.
bool IsJobOf(FileSystem& files, const std::string& path, const Json& facts) {
  const auto job = files.ReadAll(path, 64_MiB);
  const auto sum = facts.find(kJobSum);
  return job && sum != facts.end() && sum->is_number_unsigned() &&
         sum->get<std::uint64_t>() == Crc32c(AsBytes(*job));
}

/// What our lock says; an empty object where a full disk took its name and not its facts, so that
/// no more than empty folders can be beside it; null: it is not ours.
Json FactsOfLock(FileSystem& files, const std::string& path) {
  std::error_code unknown;
  const bool empty = std::filesystem::file_size(path, unknown) == 0 && !unknown;
  return empty ? Json::object() : FactsIn(files, path);
}

/// `facts` are the lock's.
bool IsLeftover(FileSystem& files, const std::string& folder, const std::string& name,
                const Json& facts) {
  const std::string path = folder + "/" + name;
  const bool ours = facts.is_object() && !facts.empty();
  if (name == "lost+found") return IsFolder(path);  // of an empty disk
  if (!facts.is_object()) return false;
  if (name == "lock") return true;
  if (name == "steps" || name == "errors") return IsOursInside(files, path, false);
  if (name == "logs") return IsOursInside(files, path, ours);
  std::error_code unknown;
  if (name == "job.yaml") return ours && IsJobOf(files, path, facts);
  if (name == "control") return ours && std::filesystem::is_socket(path, unknown);
  return ours && (name == "join-url" || name == "join-token" || name == "job.yaml.tmp" ||
                  name == "run.json.tmp" || name == "join-url.tmp" || name == "join-token.tmp");
}

Status CheckOurs(FileSystem& files, const NamedFolder& folder) {
  const Names names = MUSTER_TRY(files.List(folder.absolute));
  const Json run = FactsIn(files, folder.absolute + "/run.json");
  if (run.is_object()) return HoldsAnEarlierRun(files, folder, run);
  const Json facts = FactsOfLock(files, folder.absolute + "/lock");
  Names strangers;
  for (const std::string& name : names) {
    if (!IsLeftover(files, folder.absolute, name, facts)) strangers.push_back(name);
  }
  if (!strangers.empty()) return HoldsOthersFiles(folder, std::move(strangers));
  return Ok();
}

/// A disk without room for that keeps nobody from running.
void WriteFacts(const Fd& lock, const std::string& facts, const std::string& job_yaml) {
  Json json = Json::parse(facts, nullptr, false);
  json[kJobSum] = Crc32c(AsBytes(job_yaml));
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (::ftruncate(lock.get(), 0) == 0) {
    [[maybe_unused]] const ssize_t n = ::pwrite(lock.get(), text.data(), text.size(), 0);
  }
}

}  // namespace

Result<Fd> ClaimFolder(FileSystem& files, const NamedFolder& folder, const std::string& facts,
                       const std::string& job_yaml) {
  // Without making a lock where others have their files.
  if (!files.Exists(folder.absolute + "/lock")) MUSTER_TRY(CheckOurs(files, folder));
  Fd lock = MUSTER_TRY(Lock(files, folder.absolute));
  MUSTER_TRY(CheckOurs(files, folder));
  // Before the sum of another is in the lock.
  MUSTER_TRY(files.RemoveAll(folder.absolute + "/job.yaml"));
  WriteFacts(lock, facts, job_yaml);
  return lock;
}

}  // namespace muster::agent

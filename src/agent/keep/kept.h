#pragma once
// What outlives a process that a supervisor watches over: descriptors under names, and one string
// that says where it stood. The supervisor holds duplicates of the descriptors, so nothing that
// workers depend on is closed by a SIGKILL: neither the shim's socket nor their pipes. The next
// process finds all of it.
//
// One that was made without a supervisor keeps nothing. Single owner thread.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "os/memfd.h"

namespace muster::agent {

/// The control group of the job, as a folder: what is left in it is killed when the shim cannot.
inline constexpr const char* kCgroupName = "cgroup";

using KeptFds = std::map<std::string, std::vector<Fd>>;

/// Memory of supervisor and process: the newest string that was saved whole.
class SavedState {
 public:
  static Result<SavedState> Create();
  /// False when there is no room for it: what was saved before counts no longer.
  bool Save(std::string_view bytes);
  /// Nothing when nothing was saved.
  std::optional<std::string> Load() const;
  /// Nobody can go on from here any more: something that had to be kept was not.
  void Close();
  bool closed() const;

 private:
  struct Page;
  explicit SavedState(os::Mapping mapping) : mapping_(std::move(mapping)) {}
  Page& page() const;

  os::Mapping mapping_;
};

/// Of the process before this one.
struct PastLife {
  std::uint32_t count = 0;  ///< how many there were
  std::string death;        ///< of the last: "killed by SIGKILL"
  Instant died{};           ///< when the supervisor saw that
  std::optional<std::string> state;
};

/// Where the folder is that `fd` stands for; "" when it is gone.
std::string FolderOf(const Fd& fd);

/// The supervisor as a parent: orphans of its grandchildren become its children.
struct Family {
  int supervisor = 0;            ///< its pid; 0: there is none
  std::vector<int> strangers{};  ///< children that it had before the first life
};

class Kept {
 public:
  Kept() = default;
  /// `socket`: to the supervisor. `fds` and `past`: of the process before.
  Kept(Fd socket, KeptFds fds, SavedState* state, PastLife past, Family family = {});

  bool supervised() const { return socket_.valid(); }
  int socket() const { return socket_.get(); }  ///< hangs up when the supervisor is gone
  const PastLife& past() const { return past_; }
  const Family& family() const { return family_; }

  /// Keeps duplicates of `fds`, at most 16, in the place of what was kept under that name.
  void Keep(const std::string& name, const std::vector<int>& fds);
  void Drop(const std::string& name) { Keep(name, {}); }
  /// What the process before had kept; once each. They stay kept.
  std::vector<Fd> Take(const std::string& name);
  void Save(std::string_view bytes);

 private:
  Fd socket_;
  KeptFds fds_;
  SavedState* state_ = nullptr;
  PastLife past_;
  Family family_;
};

}  // namespace muster::agent

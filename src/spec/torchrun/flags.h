#pragma once
// The flags of torchrun 2.13 (torch/distributed/run.py), one row each: how it is spelled, what it
// takes, and why it has no meaning for `muster run`, where it has none. A constant table and
// look-ups in it; pure.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::spec::torchrun {

struct Flag {
  enum class Kind { kSwitch, kText, kWhole, kReal };
  std::string_view name;  ///< "nproc-per-node"; "nproc_per_node" is the same
  char letter = 0;        ///< 'r' of -r
  Kind kind = Kind::kText;
  bool variable = true;           ///< PET_NPROC_PER_NODE gives its default
  std::string_view choices = {};  ///< "spawn fork forkserver": nothing else is taken
  std::string_view why = {};      ///< it has no meaning here; empty: it has
};

std::span<const Flag> Flags();

/// By its full name or a prefix of it that no other flag begins with; dashes and underscores are
/// the same. Nothing when no flag begins so; Invalid names those that do when several do.
Result<const Flag*> FindFlag(std::string_view name);
/// By its letter; null when there is none.
const Flag* FindLetter(char letter);

/// "PET_NPROC_PER_NODE"; empty where torchrun reads none.
std::string VariableOf(const Flag& flag);

}  // namespace muster::spec::torchrun

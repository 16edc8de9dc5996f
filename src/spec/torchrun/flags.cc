#include "spec/torchrun/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muster::spec::torchrun {
namespace {

using Kind = Flag::Kind;

constexpr std::string_view kRendezvous = "ranks, addresses and ports come from muster run itself";
constexpr std::string_view kSearch = "search the run folder's logs, which hold every line";

constexpr Flag kFlags[] = {
    {.name = "nnodes"},
    {.name = "nproc-per-node"},
    {.name = "rdzv-backend", .why = kRendezvous},
    {.name = "rdzv-endpoint", .why = kRendezvous},
    {.name = "rdzv-id"},
    {.name = "rdzv-conf", .why = kRendezvous},
    {.name = "standalone", .kind = Kind::kSwitch},
    {.name = "max-restarts", .kind = Kind::kWhole},
    {.name = "monitor-interval", .kind = Kind::kReal, .why = "a death is seen at once"},
    {.name = "start-method",
     .choices = "spawn fork forkserver",
     .why = "it is for functions; how a script is started is --preload"},
    {.name = "event-log-handler", .why = "events are in the run folder's events.jsonl"},
    {.name = "role"},
    {.name = "module", .letter = 'm', .kind = Kind::kSwitch},
    {.name = "no-python", .kind = Kind::kSwitch},
    {.name = "run-path", .kind = Kind::kSwitch},
    {.name = "log-dir"},
    {.name = "redirects", .letter = 'r'},
    {.name = "tee", .letter = 't'},
    {.name = "local-ranks-filter"},
    {.name = "duplicate-stdout-filters", .why = kSearch},
    {.name = "duplicate-stderr-filters", .why = kSearch},
    {.name = "node-rank", .kind = Kind::kWhole, .why = kRendezvous},
    {.name = "master-addr", .why = kRendezvous},
    {.name = "master-port", .kind = Kind::kWhole, .why = kRendezvous},
    {.name = "local-addr", .why = kRendezvous},
    {.name = "logs-specs", .variable = false, .why = "it is a Python class of torchrun's"},
    {.name = "numa-binding",
     .variable = false,
     .choices = "node socket exclusive core-complex",
     .why = "muster run does not bind ranks to cores so far"},
    {.name = "signals-to-handle",
     .why =
         "TERM, INT, HUP and QUIT end the run; USR1 and USR2 go to the workers that handle them"},
    {.name = "shutdown-timeout", .kind = Kind::kWhole},
    {.name = "virtual-local-rank", .kind = Kind::kSwitch},
};

std::string WithDashes(std::string_view name) {
  std::string dashes(name);
  std::ranges::replace(dashes, '_', '-');
  return dashes;
}

}  // namespace

std::span<const Flag> Flags() { return kFlags; }

Result<const Flag*> FindFlag(std::string_view typed) {
  const std::string name = WithDashes(typed);
  std::vector<const Flag*> begin;
  for (const Flag& flag : kFlags) {
    if (flag.name == name) return &flag;
    if (!name.empty() && flag.name.starts_with(name)) begin.push_back(&flag);
  }
  if (begin.size() <= 1) return begin.empty() ? nullptr : begin.front();
  std::vector<std::string> names;
  for (const Flag* flag : begin) names.push_back(fmt::format("--{}", flag->name));
  return Error(Code::kInvalid, fmt::format("--{} may be {}", typed, fmt::join(names, ", ")),
               "write it out; 'muster help run' and docs/guide/from-torchrun.md list the options");
}

const Flag* FindLetter(char letter) {
  const auto* found = std::ranges::find(kFlags, letter, &Flag::letter);
  return letter == 0 || found == std::end(kFlags) ? nullptr : found;
}

std::string VariableOf(const Flag& flag) {
  if (!flag.variable) return "";
  std::string variable = "PET_";
  for (const char c : flag.name)
    variable += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return variable;
}

}  // namespace muster::spec::torchrun

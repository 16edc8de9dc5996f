#pragma once
// What muster-stacks does: the stacks of some processes, in two steps. `Copy` holds each process
// for a few milliseconds and copies registers, stacks and the frames of its interpreter; from then
// on the processes may go on, or be killed. `Name` looks up what the addresses mean.
//
// Blocks SIGCHLD in this thread. One thread.

#include <vector>

#include "agent/stacks/stacks.h"
#include "agent/stacks/take/held.h"
#include "agent/stacks/take/python_frames.h"

namespace muster::agent::stacks {

struct Target {
  std::uint32_t rank = 0;
  pid_t pid = 0;
};

struct Copied {
  Target target;
  HeldProcess process;
  PythonStacks python;
};

/// `limit` for all; a process that does not stop costs at most 100 ms of it.
std::vector<Copied> Copy(const std::vector<Target>& targets, std::chrono::nanoseconds limit);

std::vector<Process> Name(const std::vector<Copied>& copied, std::chrono::nanoseconds limit);

/// Reads words of the form RANK:PID. Invalid names the one that is wrong.
Result<std::vector<Target>> ParseTargets(const std::vector<std::string_view>& words);

}  // namespace muster::agent::stacks

#pragma once
// Where every thread of some processes stands, as muster-stacks saw it: plain values, and their
// JSON (docs/formats/stacks.md), which goes over pipes and the wire and into files. What could not
// be had is said in words, in `missing`. Symbols and names come from foreign programs: who shows
// them passes them through base/text.h.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace muster::agent::stacks {

inline constexpr Bytes kMaxJson = 4_MiB;

struct Frame {
  std::string function;  ///< without parameters; "": not known
  std::string library;   ///< "libgloo.so", "python3.11"; "" in Python
  std::string at{};      ///< "train.py:31", "loop.cc:12"; "": not known
  bool operator==(const Frame&) const = default;
};

/// Threads of one process that stand at the same place. The innermost frame is the first.
struct Thread {
  std::vector<int> tids;
  std::string name;
  std::vector<Frame> native{};
  std::vector<Frame> python{};
  std::string missing{};  ///< why frames are absent or end early
  bool operator==(const Thread&) const = default;
};

struct Process {
  std::uint32_t rank = 0;
  int pid = 0;
  std::string name{};
  std::string state{};            ///< the letter of /proc/PID/stat: R S D T
  std::string missing{};          ///< why there is nothing
  std::string python_missing{};   ///< an interpreter whose frames could not be read, and why
  std::vector<Thread> threads{};  ///< the main thread is in the first
  bool operator==(const Process&) const = default;
};

/// One object with a newline behind it.
std::string ToJson(const std::vector<Process>& processes);
/// Invalid names what is wrong; more than kMaxJson is refused.
Result<std::vector<Process>> FromJson(std::string_view json);

}  // namespace muster::agent::stacks

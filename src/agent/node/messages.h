#pragma once
// What the coordinator of a job and the agent of a node say to each other: orders go down, reports
// come up, each in order. Plain values; whether they cross a process is the business of who carries
// them (node.h).
//
// Every rank in them is a rank of the job, every Instant the node's own CLOCK_MONOTONIC. `spawned`
// is the generation in which a rank's process was started: what is said of an older process of the
// same rank is told by it.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/coordinator/job_state.h"
#include "agent/launch/rank_range.h"
#include "agent/logs/log_keeper.h"
#include "agent/rules/engine.h"
#include "base/error.h"
#include "os/heartbeat.h"
#include "os/process_sight.h"

namespace muster::agent::order {

/// The node's ranks begin with this one; before any Start. Failed when their pages cannot be had.
struct Seat {
  std::uint32_t first = 0;
};

/// A new shim, and a new zygote with it, in the place of one that is there or was Lost. Failed when
/// there is none.
struct Renew {};

/// The ranks of the node that are to be started, and those that wait to go on in the generation.
/// Waits for a zygote that still loads (Loading). Answered by Started or Exited of each rank of
/// `ranks`, or Failed; not at all by a node that said that its shim is Lost.
struct Start {
  Generation generation;
  bool via_zygote = false;
  std::uint32_t restart_count = 0;
  std::vector<Rank> ranks{};
  std::vector<Rank> keepers{};
  std::uint32_t world = 0;    ///< ranks of the job in this generation
  std::string master_addr{};  ///< of the generation's TCPStore
  std::uint16_t master_port = 0;
};

/// Every rank of the job runs: log rules count from here.
struct Go {};
/// A fault was seen: log rules judge nothing until the next Start.
struct Pause {};
/// Whoever is in a collective, or enters one, gets an error with `reason`.
struct Abort {
  std::string reason;
};
/// `signal`, `grace` to end, then everything is killed. Answered by Stopped. A second one shortens
/// the grace.
struct Stop {
  Generation generation;  ///< and everything older
  int signal = 0;
  nanoseconds grace{};
};
struct Kill {
  Rank rank;
};
/// To every worker that has a handler for it.
struct Signal {
  int number = 0;
};
/// What a dead worker left; answered by Words once its output is complete.
struct TellWords {
  Rank rank;
  Generation spawned;
  Generation generation;            ///< of its fault: older logs are not asked for any more
  std::uint32_t restart_count = 0;  ///< this and what follows: for what its environment was
  std::uint32_t world = 0;
  std::string master_addr{};
  std::uint16_t master_port = 0;
};
/// Where every thread of its ranks stands. Answered by StacksTaken, then Stacks; a second one
/// before that takes the place of the first.
struct TakeStacks {
  std::uint64_t id = 0;
};
/// Who has not answered the Stop by now is lost: a node of several, or the shim of this process's.
struct GiveUp {};
/// The run is over: the shim goes, with all that is below it. Answered by Ended.
struct End {};

}  // namespace muster::agent::order

namespace muster::agent::report {

/// A zygote that has loaded what its copies need.
struct ZygoteReady {
  int pid = 0;
};
/// There is none and there will be none: workers are executed. `why` in words, or "" when it served
/// before.
struct ZygoteBroken {
  std::string why;
};
/// A Start waits for a zygote that loads for so long.
struct Loading {
  std::chrono::nanoseconds lasted{};
  int pid = 0;  ///< of the zygote
};
/// The ranks of a Start were asked for, and those that wait were told of their generation.
struct Begun {
  Generation generation;
};
struct Started {
  Rank rank;
  Generation spawned;
  int pid = 0;
  bool forked = false;
};
/// A worker's end, or that it never began (Ending::start_error). What it had published came before.
struct Exited {
  Rank rank;
  Generation spawned;
  int pid = 0;
  Ending ending{};
  std::string exception{};  ///< the line of its stderr that tells why it crashed
};
/// On its recovery link: it can outlive another rank's death, or it stands at a step boundary.
struct Standing {
  Rank rank;
  Generation spawned;
  bool quiesced = false;
};
/// What the heartbeats show: steps that are new, and where each rank is.
struct Progress {
  struct Step {
    Rank rank;
    os::StepRecord record;
  };
  struct Place {
    Rank rank;
    os::Pulse pulse;
    std::optional<os::ProcessSight> sight{};  ///< of one that has not moved for a while
    std::optional<std::uint64_t> io{};        ///< os::SeeIo, with it, of one without heartbeat
  };
  std::vector<Step> steps{};
  std::vector<Place> places{};
  bool complete = false;     ///< of all ranks of the node, as they are looked at regularly
  std::uint64_t missed = 0;  ///< steps that were overwritten before they were read, in all
};
struct Stopped {
  Generation generation;   ///< of the Stop that it answers, or a newer one
  std::uint32_t left = 0;  ///< processes that survived SIGKILL
};
struct RuleFired {
  rules::Firing firing;
};
struct Words {
  Rank rank;
  Generation spawned;
  std::string out_tail{}, err_tail{};      ///< the last 64 KiB
  std::string error_file{};                ///< content of TORCHELASTIC_ERROR_FILE
  std::vector<std::string> environment{};  ///< values that are the user's own hidden
};
/// The stacks of these ranks are copied: they may be killed.
struct StacksTaken {
  std::uint64_t id = 0;
  std::vector<Rank> ranks;
};
/// What the copies mean (stacks/stacks.h), of the same ranks.
struct Stacks {
  std::uint64_t id = 0;
  std::vector<Rank> ranks;
  std::string json;
};
/// Output that could not be kept, or that rules did not see, since the last one.
struct Losses {
  std::vector<LogLoss> logs;
  std::uint64_t rules_missed = 0;
};
/// An order could not be carried out.
struct Failed {
  Error error{Code::kBug, {}};
};
/// A Start waits for nodes.
struct Waiting {
  std::uint32_t missing = 0, slots = 0;
  std::chrono::nanoseconds lasted{};
};
/// The generation that is about to start has so many ranks.
struct Resized {
  std::uint32_t world = 0;
};
/// The agent of the node leaves, or, said by who carries its messages, is not reached any more.
struct Gone {
  std::string reason;
  Instant since{};  ///< when it was heard last; not on the wire
};
/// A node of several, and every worker on it.
struct NodeLost {
  std::string name;
  RankRange ranks;
  std::string reason;
  Instant since{};
  bool shim = false;  ///< its shim alone (Lost): the node gets another
};
/// The shim is gone, and by now every worker of the node with it, and whatever they started.
struct Lost {
  std::string reason;  ///< how it went: "killed by SIGKILL"
};
struct Ended {
  bool hung_writer = false;      ///< a log write hangs in the kernel: leave by _exit
  std::string left_cgroup = {};  ///< a control group in which something does not end
};

}  // namespace muster::agent::report

namespace muster::agent {

using Order = std::variant<order::Seat, order::Renew, order::Start, order::Go, order::Pause,
                           order::Abort, order::Stop, order::Kill, order::Signal, order::TellWords,
                           order::TakeStacks, order::GiveUp, order::End>;

using Report =
    std::variant<report::ZygoteReady, report::ZygoteBroken, report::Loading, report::Begun,
                 report::Started, report::Exited, report::Standing, report::Progress,
                 report::Stopped, report::RuleFired, report::Words, report::StacksTaken,
                 report::Stacks, report::Losses, report::Failed, report::Waiting, report::Resized,
                 report::Gone, report::NodeLost, report::Lost, report::Ended>;

}  // namespace muster::agent

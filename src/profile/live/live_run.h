#pragma once
// A run as it stands now: what each rank does, and what struck the run, kept up to date from the
// records that `muster run` appends to (docs/formats/run-folder.md). A poll costs what is new since
// the last one, at most a few KiB a rank, whatever the run's length. Texts come from files: who
// shows them passes them through base/text.h. One thread.

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "profile/live/line_tail.h"
#include "profile/report/records.h"

namespace muster::profile {

struct RankLive {
  enum class State {
    kWaiting,   ///< no process yet
    kStarted,   ///< its process runs; it made no step that is known
    kRunning,   ///< it makes steps
    kPaused,    ///< its generation is given up, it may go on in the next
    kHanging,   ///< it lives and does nothing
    kStopped,   ///< we ended it
    kFailed,    ///< it died
    kFinished,  ///< it ended well
  };
  State state = State::kWaiting;
  std::int64_t state_ns = 0;  ///< of a hang: when it was seen
  std::uint64_t generation = 0;
  std::optional<std::uint64_t> step;   ///< the last that it finished
  double loss = 0;                     ///< NaN: not known or not finite
  std::int64_t end_ns = 0;             ///< of that step
  std::string note;                    ///< how it ended: "SIGKILL", "exit 3"
  std::deque<std::uint32_t> times_us;  ///< of its last steps in this generation, at most 20

  /// The median of them.
  std::optional<double> StepSeconds() const;
};
std::string_view NameOf(RankLive::State state);

/// What happened to the run: a fault, a restart, its end.
struct Happening {
  std::int64_t t_ns = 0;
  std::string text;
};

class LiveRun {
 public:
  /// Errors as ReadFacts has them.
  static Result<LiveRun> Open(const RunFiles& files);

  /// Reads what is new. The happenings since the last poll, oldest first, at most 1,000.
  std::vector<Happening> Poll();

  enum class State { kRunning, kSucceeded, kFailed, kLost };
  State state() const { return state_; }
  const RunFacts& facts() const { return facts_; }
  const std::vector<RankLive>& ranks() const { return ranks_; }
  std::uint64_t generation() const { return generation_; }
  std::optional<std::uint64_t> checkpoint() const { return checkpoint_; }
  /// The step of the rank that is farthest.
  std::optional<std::uint64_t> Farthest() const;
  const std::string& reason() const { return reason_; }
  std::int64_t ended_ns() const { return ended_ns_; }

 private:
  LiveRun(const RunFiles& files, RunFacts facts);
  void ReadState();
  void TakeToldEnd();
  void PollSteps(std::size_t rank);
  void See(const EventRecord& event, std::vector<Happening>& happenings);
  void SeeExit(const EventRecord& event, RankLive& rank);
  void SeeStep(const StepRow& row, RankLive& rank);
  std::string TextOf(const EventRecord& event) const;

  const RunFiles* files_;
  RunFacts facts_;
  std::vector<RankLive> ranks_;
  LineTail events_;
  std::vector<LineTail> steps_;
  State state_ = State::kRunning;
  std::uint64_t generation_ = 0;
  std::optional<std::uint64_t> checkpoint_;
  std::string reason_;
  std::int64_t ended_ns_ = 0;
  std::optional<EventRecord> told_end_;  ///< for a run whose disk took no result.json
};

}  // namespace muster::profile

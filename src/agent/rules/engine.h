#pragma once
// Judges the lines of a job's workers by its log rules: pure, on times that it is given
// (monotonic). What the keys of a rule mean is in docs/reference/job-file.md#log-rules; here is
// what goes beyond:
//
// - A generation begins with Begin, which forgets everything. The start cut-off counts from Go.
// From
//   Pause to the next Begin nothing is judged.
// - A line in time is one that came at its deadline or before. Lines come in the order of their
//   times; a deadline that passed before a line fires before the line is looked at.
// - A rule whose action ends the generation fires once in it (scope each: once a rank). One that
//   only tells is quiet for kQuiet after a match or value fired it, and counts what it kept to
//   itself; of a silence it tells again when the silence was broken.
// - Of a line longer than 64 KiB the first piece counts; a line that matches `stop` ends its rule
//   for the generation and is not judged.
//
// Single owner thread.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/rules/literal_filter.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "spec/log_rule.h"
#include "spec/pattern.h"

namespace muster::agent::rules {

using std::chrono::nanoseconds;

inline constexpr nanoseconds kQuiet = std::chrono::seconds(10);

struct Firing {
  std::size_t rule = 0;  ///< its place in the job
  std::string name;
  spec::LogRule::Act action = spec::LogRule::Act::kNotify;
  Generation generation;
  Rank rank;        ///< whose line it was; of a silence, who was expected to speak
  std::string why;  ///< one line of plain text, with values
  Instant time;     ///< of the line, or when the time was up
};

/// Whether the generation goes on after the action.
bool OnlyTells(spec::LogRule::Act action);

class RuleEngine {
 public:
  /// Invalid for a pattern that RE2 does not take.
  static Result<RuleEngine> Create(const std::vector<spec::LogRule>& rules, std::uint32_t ranks);
  RuleEngine(RuleEngine&&) noexcept;
  RuleEngine& operator=(RuleEngine&&) noexcept;
  ~RuleEngine();

  void Begin(Generation generation, Instant now);
  void Go(Instant now);
  /// In the place of Begin and Go, when others judged the generation before: what it was to have
  /// said by now counts as said, so that only a silence from here on is one.
  void Resume(Generation generation, Instant now);
  void Pause();
  /// The rank ended well: nothing more is expected of it.
  void Finish(Rank rank, Instant now);
  /// Some of its lines were lost: its silence is no proof, and values are not in a row.
  void Gap(Rank rank, Instant now);
  /// Nobody could have looked for so long (we were stopped): it does not count.
  void Skip(nanoseconds time);
  void TakeLine(Rank rank, spec::LogRule::Stream stream, std::string_view line, Instant now);
  void Tick(Instant now);

  /// When Tick may have something to do; kNever without a rule that waits.
  Instant NextDeadline() const;
  /// What fired since the last call, in order.
  std::vector<Firing> TakeFirings();
  /// Lines that matched rule i since Begin.
  std::uint64_t Matches(std::size_t rule) const;

 private:
  struct Watch;
  explicit RuleEngine(std::vector<std::unique_ptr<Watch>> watches, LiteralFilter filter,
                      std::uint32_t ranks);
  void Expire(Instant now);

  std::vector<std::unique_ptr<Watch>> watches_;
  LiteralFilter filter_;
  std::vector<std::uint8_t> always_;  ///< patterns without a literal, as found_
  std::vector<std::uint8_t> found_;   ///< what this line may match: 2i rule i, 2i + 1 its stop
  std::uint32_t ranks_;
  std::vector<Firing> firings_;
  Generation generation_;
  bool judging_ = false;
  Instant next_ = kNever;  ///< no deadline is earlier
};

}  // namespace muster::agent::rules

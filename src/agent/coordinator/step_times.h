#pragma once
// How long the last steps of a job took: what a step may take before it counts as a hang. A step
// takes as long as its slowest rank. Pure; owner: the run loop.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace muster::agent {

class StepTimes {
 public:
  /// A rank finished `step`.
  void Add(std::uint64_t step, std::chrono::nanoseconds took);

  /// Of the last 64 steps; 0 before the first.
  std::chrono::nanoseconds Slowest() const { return SlowestOf(kRecent); }

  /// What a step that is under way may take: 3 × the third slowest of the last 64, at least 1.25 ×
  /// the slowest of the last 1024; nothing before 8 steps are known.
  ///
  /// The 99th percentile of 64 is their maximum, so one pause of the machine would make the next
  /// hang three pauses late. Steps that are slow by plan, every hundredth with a table to print,
  /// are in the second term, however rare.
  std::optional<std::chrono::nanoseconds> Limit() const;

 private:
  static constexpr std::size_t kKept = 1024, kRecent = 64;
  struct Entry {
    std::uint64_t step = 0;  ///< from 1; 0: none
    std::chrono::nanoseconds took{};
  };
  std::chrono::nanoseconds SlowestOf(std::size_t count) const;
  bool Has(std::size_t back) const;
  std::chrono::nanoseconds Back(std::size_t back) const;

  std::optional<std::chrono::nanoseconds> Measure() const;

  std::array<Entry, kKept> entries_{};
  std::uint64_t newest_ = 0;
  /// Asked for each rank at each look, and the same until a step is added.
  mutable std::optional<std::optional<std::chrono::nanoseconds>> limit_;
};

}  // namespace muster::agent

#pragma once
// What rank 0 tells people and the run folder: a line every so many steps on stdout, flushed at
// once, and eval.jsonl (docs/formats/run-folder.md). Other ranks say nothing. The rate, img/s, is
// that of training: time in evaluations and checkpoints does not count. Training thread.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/result.h"
#include "train/task.h"
#include "train/worker.h"

namespace muster::train {

struct TrainerOptions;

class Report {
 public:
  explicit Report(Worker& worker) : worker_(&worker) {}

  void Started(std::uint64_t step, std::int64_t parameters, const TrainerOptions& options);
  void Stepped(std::uint64_t step, double loss, double rate, const TrainerOptions& options);
  /// This rank outlived another one; `step` is done.
  void WentOn(std::uint64_t step);
  /// There is nothing to evaluate on.
  void Unevaluated();
  /// Whether the run folder, when there is one, has no score of `step`.
  bool LacksEvaluation(std::uint64_t step) const;
  /// Prints the score and keeps it in the run folder, when there is one. What the folder does not
  /// take is warned of: a score that is on the screen is no reason to stop training.
  void Evaluated(std::uint64_t step, const std::string& split, const Score& score);

  /// While it lives no time passes for the rate.
  class Pause {
   public:
    explicit Pause(Report& report) : report_(report), begin_(report.worker_->clock.Now()) {}
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause() { report_.since_ += report_.worker_->clock.Now() - begin_; }

   private:
    Report& report_;
    Instant begin_;
  };

 private:
  void WarnOfFewSaves(const TrainerOptions& options) const;

  Worker* worker_;
  Instant since_;
  std::uint64_t since_step_ = 0;
};

/// A line of eval.jsonl. What is no finite number is null.
std::string EvalLine(std::uint64_t step, std::uint64_t generation, const Score& score);

/// Whether `scores`, an eval.jsonl, has a whole line of `step`.
bool HasScore(std::string_view scores, std::uint64_t step);
/// `scores` with `line` in the place of what it has of `step`, at the end: a step that is evaluated
/// again, after a restart, has one line.
std::string ScoresWith(std::string_view scores, std::uint64_t step, std::string_view line);
/// The same with the file at `path`: grows by the line, or is replaced whole where it had one.
Status KeepScore(FileSystem& files, const std::string& path, std::uint64_t step,
                 const std::string& line);

}  // namespace muster::train

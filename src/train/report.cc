#include "train/report.h"

#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "base/durable.h"
#include "base/log.h"
#include "train/trainer.h"

namespace muster::train {
namespace {

using Number = unsigned long long;  // what %llu takes

// Not fmt: torch's wheel brings headers of another fmt than the one we link.
[[gnu::format(printf, 1, 2)]] std::string Text(const char* format, ...) {
  std::array<char, 256> line{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  return line.data();
}

std::string JsonNumber(double value) { return std::isfinite(value) ? Text("%.6f", value) : "null"; }

double Mean(double sum, std::uint64_t count) { return sum / static_cast<double>(count); }

constexpr Bytes kMostScores = 64_MiB;

/// Every whole line with its end; what a death tore off is none.
void EachLine(std::string_view text, const auto& take) {
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    take(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
}

bool IsOfStep(std::string_view line, std::uint64_t step) {
  return line.starts_with(Text("{\"step\":%llu,", Number{step}));
}

// A line that nobody can read any more is no reason to stop training.
void PrintLine(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

void Report::Started(std::uint64_t step, std::int64_t parameters, const TrainerOptions& options) {
  since_ = worker_->clock.Now();
  since_step_ = step;
  if (!worker_->IsFirst()) return;
  if (step >= options.steps) {
    PrintLine(Text("nothing left to train: the newest checkpoint is of step %llu, --steps is %llu",
                   Number{step}, Number{options.steps}));
    return;
  }
  PrintLine(Text("%lld parameters, %u ranks, batch %u, %s mode, %s step %llu of %llu",
                 static_cast<long long>(parameters), worker_->group.world(), options.global_batch,
                 options.mode == Mode::kCanonical ? "canonical" : "fast",
                 step == 0 ? "from" : "resuming at", Number{step}, Number{options.steps}));
  WarnOfFewSaves(options);
}

/// By hand, nothing starts the program again and to save at the end only is what was asked for.
void Report::WarnOfFewSaves(const TrainerOptions& options) const {
  const std::uint64_t every = options.checkpoint.every;
  const bool by_hand = worker_->env.run_folder.empty();
  if (options.checkpoint.folder.empty() || (by_hand && every == 0)) return;
  if (options.steps == 1 || (every > 0 && every < options.steps)) return;
  const std::string why = every == 0 ? std::string("--checkpoint-every N saves in between")
                                     : Text("there is one each %llu steps", Number{every});
  PrintLine(
      Text("no checkpoint before the last step, %llu: %s", Number{options.steps}, why.c_str()));
}

void Report::WentOn(std::uint64_t step) {
  since_ = worker_->clock.Now();
  since_step_ = step;
  if (!worker_->IsFirst()) return;
  PrintLine(Text("another rank died and was replaced; going on behind step %llu", Number{step}));
}

void Report::Stepped(std::uint64_t step, double loss, double rate, const TrainerOptions& options) {
  const bool due = options.log_every > 0 && step % options.log_every == 0;
  if (!worker_->IsFirst() || !(due || step == options.steps)) return;
  const Instant now = worker_->clock.Now();
  const double seconds = std::chrono::duration<double>(now - since_).count();
  const auto samples = static_cast<double>((step - since_step_) * options.global_batch);
  PrintLine(
      Text("step %llu loss=%.4f lr=%.6f %.0f img/s", Number{step}, loss, rate, samples / seconds));
  since_ = now;
  since_step_ = step;
}

void Report::Unevaluated() {
  if (!worker_->IsFirst()) return;
  PrintLine("the data has no split test or validation: nothing will be evaluated");
}

std::string EvalLine(std::uint64_t step, std::uint64_t generation, const Score& score) {
  const std::string accuracy = JsonNumber(Mean(static_cast<double>(score.correct), score.count));
  const std::string loss = JsonNumber(Mean(score.loss_sum, score.count));
  return Text("{\"step\":%llu,\"gen\":%llu,\"accuracy\":%s,\"loss\":%s,\"samples\":%llu}\n",
              Number{step}, Number{generation}, accuracy.c_str(), loss.c_str(),
              Number{score.count});
}

bool HasScore(std::string_view scores, std::uint64_t step) {
  bool found = false;
  EachLine(scores, [&](std::string_view line) { found = found || IsOfStep(line, step); });
  return found;
}

std::string ScoresWith(std::string_view scores, std::uint64_t step, std::string_view line) {
  std::string all;
  EachLine(scores, [&](std::string_view old) {
    if (!IsOfStep(old, step)) all += old;
  });
  return all.append(line);
}

Status KeepScore(FileSystem& files, const std::string& path, std::uint64_t step,
                 const std::string& line) {
  // One that cannot be read is added to: a score is not worth less because of it.
  const std::string scores = files.ReadAll(path, kMostScores).value_or("");
  const std::string all = ScoresWith(scores, step, line);
  if (!all.starts_with(scores)) return WriteDurably(files, path, AsBytes(all));
  auto file = MUSTER_TRY(files.Create(path, {.append = true}));
  MUSTER_TRY(file->Write(AsBytes(std::string_view(all).substr(scores.size()))));
  return file->Close();
}

bool Report::LacksEvaluation(std::uint64_t step) const {
  if (worker_->env.run_folder.empty()) return false;
  const auto scores = worker_->files.ReadAll(worker_->env.run_folder + "/eval.jsonl", kMostScores);
  return !scores || !HasScore(*scores, step);
}

void Report::Evaluated(std::uint64_t step, const std::string& split, const Score& score) {
  if (!worker_->IsFirst()) return;
  PrintLine(split + Text(" accuracy=%.4f loss=%.4f samples=%llu step=%llu",
                         Mean(static_cast<double>(score.correct), score.count),
                         Mean(score.loss_sum, score.count), Number{score.count}, Number{step}));
  if (worker_->env.run_folder.empty()) return;
  const std::string line = EvalLine(step, worker_->env.generation.value(), score);
  const std::string path = worker_->env.run_folder + "/eval.jsonl";
  if (const Status kept = KeepScore(worker_->files, path, step, line); !kept) {
    log::Warn("a score is not in the run folder",
              {{"step", step}, {"error", kept.error().message()}});
  }
}

}  // namespace muster::train

#include "profile/report/fake_run.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/rng.h"

namespace muster::profile {
namespace {

constexpr std::int64_t kCreated = 5'000'000'000'000;  // 5,000 s after the machine started
constexpr std::int64_t kMillisecond = 1'000'000;

/// Writes one fake run; time moves on as it writes.
class FakeRun {
 public:
  FakeRun(const std::string& folder, const FakeRunOptions& options)
      : folder_(folder), options_(options), events_(folder + "/events.jsonl") {
    for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
      std::filesystem::create_directories(fmt::format("{}/logs/rank-{}", folder, rank));
      steps_.emplace_back(fmt::format("{}/steps/rank-{}.jsonl", folder, rank));
      sequence_.push_back(0);
    }
    evals_.open(folder + "/eval.jsonl");
  }

  void Write() {
    WriteFixed();
    Event(
        R"("event":"run_started","ranks":{},"command":["muster-train","vit","--data","/data/fashion"])",
        options_.ranks);
    Start(1, 0, 900);
    std::uint64_t last = options_.steps;
    if (options_.fault_step != 0) {
      RunSteps(1, 1, options_.fault_step - 1);
      Die(1);
      last = options_.fault_step - 1;
      if (options_.recovers) {
        const std::uint64_t resume =
            (options_.fault_step - 1) / options_.checkpoint_every * options_.checkpoint_every;
        Start(2, resume, 180);
        RunSteps(2, resume + 1, options_.steps);
        last = options_.steps;
      }
    } else {
      RunSteps(1, 1, options_.steps);
    }
    Finish(last);
  }

 private:
  template <typename... Args>
  void Event(fmt::format_string<Args...> text, Args&&... args) {
    events_ << fmt::format("{{\"t_ns\":{},", now_) << fmt::format(text, std::forward<Args>(args)...)
            << "}\n";
  }

  void WriteFixed() {
    std::ofstream(folder_ + "/lock").flush();
    std::ofstream(folder_ + "/generation") << (options_.fault_step != 0 ? 2 : 1) << "\n";
    std::ofstream(folder_ + "/run.json") << fmt::format(
        R"({{"format":"muster-run/1","id":"20261129-2138-7f3a","name":"{}","version":"0.1.0","host":"node-1",)"
        R"("pid":4242,"created_utc":"2026-11-29T21:38:14.123Z","created_ns":{},"ranks":{},"seed":7}})",
        options_.name, kCreated, options_.ranks);
    std::ofstream(folder_ + "/job.yaml") << fmt::format(
        "apiVersion: muster/v1\nkind: Job\nmetadata:\n  name: vit-fashion\nspec:\n  ranksPerNode: "
        "{}\n"
        "  command: [muster-train, vit, --data, /data/fashion]\n  checkpoint:\n    dir: "
        "checkpoints\n"
        "    every: {}\n  restart:\n    processRestarts: 3\n",
        options_.ranks, options_.checkpoint_every);
  }

  void Start(std::uint64_t generation, std::uint64_t resume, std::int64_t startup_ms) {
    Event(R"("event":"generation_started","gen":{},"resume_step":{})", generation, resume);
    for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
      now_ += 8 * kMillisecond;
      Event(R"("event":"worker_started","gen":{},"rank":{},"pid":{},"how":"fork")", generation,
            rank, 5000 + 10 * generation + rank);
    }
    now_ += startup_ms * kMillisecond;
    first_of_generation_ = true;
  }

  double LossAt(std::uint64_t step) const {
    Rng rng(Mix(1, step));
    const double progress = static_cast<double>(step) / static_cast<double>(options_.steps);
    return 0.42 + 1.9 * std::exp(-7 * progress) + 0.09 * (rng.Uniform() - 0.5) * (2 - progress);
  }

  void Step(std::uint64_t generation, std::uint64_t step) {
    Rng rng(Mix(2, step, generation));
    const bool saves = options_.checkpoint_every != 0 && step % options_.checkpoint_every == 0;
    const bool evaluates = options_.eval_every != 0 && step % options_.eval_every == 0;
    const auto jitter = [&](double mean) {
      return static_cast<std::uint32_t>(
          mean * (0.9 + 0.2 * rng.Uniform() + (rng.Below(40) == 0 ? 0.8 : 0)));
    };
    const std::uint32_t checkpoint = saves ? jitter(22'000) : 0;
    const std::uint32_t eval = evaluates ? jitter(90'000) : 0;
    std::uint32_t longest = 0;
    for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
      const std::uint32_t data = jitter(1'500);
      const std::uint32_t forward = jitter(16'000);
      const std::uint32_t backward = jitter(27'000);
      const std::uint32_t comm = jitter(2'500);
      const std::uint32_t optimizer = jitter(3'000);
      const std::uint32_t total =
          data + forward + backward + comm + optimizer + checkpoint + eval + 400;
      longest = std::max(longest, total);
      steps_[rank] << fmt::format(
          R"({{"seq":{},"step":{},"gen":{},"begin_ns":{},"total_us":{},"loss":{:.6f},"phase_us":)"
          R"({{"data":{},"forward":{},"backward":{},"comm":{},"optimizer":{},"checkpoint":{},"eval":{}}}}})"
          "\n",
          ++sequence_[rank], step, generation, now_ + std::int64_t{rank} * 100'000, total,
          LossAt(step), data, forward, backward, comm, optimizer, checkpoint, eval);
    }
    now_ += std::int64_t{longest} * 1000;
    if (first_of_generation_) Event(R"("event":"ranks_ready","gen":{})", generation);
    first_of_generation_ = false;
    if (saves) Event(R"("event":"checkpoint","gen":{},"step":{})", generation, step);
    if (evaluates) Evaluate(generation, step);
  }

  void Evaluate(std::uint64_t generation, std::uint64_t step) {
    const double progress = static_cast<double>(step) / static_cast<double>(options_.steps);
    evals_ << fmt::format(
        R"({{"step":{},"gen":{},"accuracy":{:.4f},"loss":{:.4f},"samples":10000}})"
        "\n",
        step, generation, 0.847 - 0.25 * std::exp(-4 * progress), LossAt(step) + 0.02);
  }

  void RunSteps(std::uint64_t generation, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t step = first; step <= last; ++step) Step(generation, step);
  }

  void Die(std::uint64_t generation) {
    const std::uint32_t rank = options_.fault_rank;
    std::ofstream(fmt::format("{}/logs/rank-{}/gen-{}.stderr.log", folder_, rank, generation))
        << options_.fault_log;
    const std::int64_t died = now_ + 21 * kMillisecond;
    now_ = died + 1 * kMillisecond;
    Event(
        R"("event":"worker_exited","gen":{},"rank":{},"pid":{},"signal":"SIGKILL","cause":"fault")",
        generation, rank, 5000 + 10 * generation + rank);
    Event(
        R"("event":"fault","gen":{},"rank":{},"cause":"killed by SIGKILL","step":{},"died_ns":{})",
        generation, rank, options_.fault_step, died);
    now_ += 21 * kMillisecond;
    Event(R"("event":"pause","gen":{})", generation);
    now_ += 6 * kMillisecond;
    for (std::uint32_t other = 0; other < options_.ranks; ++other) {
      if (other == rank) continue;
      Event(
          R"("event":"worker_exited","gen":{},"rank":{},"pid":{},"signal":"SIGTERM","cause":"stopped")",
          generation, other, 5000 + 10 * generation + other);
    }
    Event(R"("event":"workers_stopped","gen":{})", generation);
  }

  void Finish(std::uint64_t last) {
    const bool succeeded = last == options_.steps;
    const std::uint64_t generation = options_.fault_step != 0 && options_.recovers ? 2 : 1;
    now_ += 60 * kMillisecond;
    for (std::uint32_t rank = 0; succeeded && rank < options_.ranks; ++rank) {
      Event(R"("event":"worker_exited","gen":{},"rank":{},"pid":{},"code":0,"cause":"finished")",
            generation, rank, 5000 + 10 * generation + rank);
    }
    if (!options_.result) return;
    const int code = succeeded ? 0 : 137;
    Event(R"("event":"run_ended","state":"{}","exit_code":{})", succeeded ? "SUCCEEDED" : "FAILED",
          code);
    std::ofstream(folder_ + "/result.json") << fmt::format(
        R"({{"format":"muster-result/1","state":"{}","exit_code":{},"reason":"{}","ended_ns":{},)"
        R"("ended_utc":"2026-11-29T21:38:55.400Z","steps":{},"restarts":{}}})",
        succeeded ? "SUCCEEDED" : "FAILED", code, options_.reason, now_, last, generation - 1);
  }

  std::string folder_;
  FakeRunOptions options_;
  std::ofstream events_;
  std::vector<std::ofstream> steps_;
  std::vector<std::uint64_t> sequence_;
  std::ofstream evals_;
  std::int64_t now_ = kCreated + 4 * kMillisecond;
  bool first_of_generation_ = true;
};

}  // namespace

void WriteFakeRun(const std::string& folder, const FakeRunOptions& options) {
  std::filesystem::create_directories(folder + "/steps");
  FakeRun(folder, options).Write();
}

}  // namespace muster::profile

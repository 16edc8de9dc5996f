// How many lines a second ten log rules judge on one core: framing, filter, patterns, states.
// Prints one JSON object a round: {"lines", "bytes", "seconds", "firings"}, thread CPU time.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "agent/logs/line_framer.h"
#include "agent/rules/engine.h"
#include "base/rng.h"

namespace {

using namespace muster;
using agent::rules::RuleEngine;
using spec::LogRule;
using spec::Threshold;

constexpr std::size_t kLines = 1'000'000;
constexpr std::size_t kRead = std::size_t{64} << 10;

std::vector<LogRule> TenRules() {
  using std::chrono::minutes;
  const Threshold low{Threshold::Operator::kBelow, 1};
  return {
      {.name = "loss", .pattern = "loss=(\\S+)", .start_within = minutes(10), .every = minutes(2)},
      {.name = "spike",
       .pattern = ".*\\[Epoch \\d+ Batch \\d+.*loss=(\\d+\\.\\d+).*",
       .threshold = Threshold{Threshold::Operator::kAbove, 50},
       .points = 20},
      {.name = "throughput", .pattern = "tok/s ([0-9.]+)", .threshold = low, .points = 25},
      {.name = "norm",
       .pattern = "grad_norm[=: ]+([0-9.eE+-]+|nan|inf)",
       .threshold = Threshold{Threshold::Operator::kAbove, 1e6}},
      {.name = "checkpoint",
       .pattern = "The checkpoint is finalized",
       .start_within = minutes(30),
       .every = minutes(30)},
      {.name = "start", .pattern = "Experiment configuration", .start_within = minutes(10)},
      {.name = "cuda", .pattern = "CUDA error: (?:out of memory|an illegal)", .fault = true},
      {.name = "nccl", .pattern = "NCCL (?:WARN|ERROR) .*timeout", .fault = true},
      {.name = "oom",
       .pattern = "OutOfMemoryError",
       .fault = true,
       .stream = LogRule::Stream::kErr},
      {.name = "disk", .pattern = "No space left on device", .fault = true},
  };
}

/// One line in five is a step's, which four rules read; the others are what trainers print beside.
void AppendLines(std::string& text) {
  Rng rng(1);
  for (std::size_t i = 0; i < kLines; ++i) {
    const auto stamp =
        fmt::format("2026-11-29 21:{:02}:{:02},{:03} ", i / 60000 % 60, i / 1000 % 60, i % 1000);
    switch (i % 5) {
      case 0:
        text += fmt::format(
            "{}[INFO] train.py:212 [Epoch 3 Batch {}] loss={:.4f} grad_norm={:.3f} "
            "lr=3.0e-04 tok/s {:.1f}\n",
            stamp, i, 2.0 + static_cast<double>(rng.Below(1000)) / 1000,
            static_cast<double>(rng.Below(1000)) / 300,
            4000.0 + static_cast<double>(rng.Below(900)));
        break;
      case 1:
        text += fmt::format("{}[DEBUG] loader.py:88 shard {} of 1024 read in {} ms, queue {}\n",
                            stamp, rng.Below(1024), rng.Below(90), rng.Below(16));
        break;
      case 2:
        text += fmt::format("{}[INFO] ddp.py:41 bucket {} reduced, {} bytes\n", stamp,
                            rng.Below(32), rng.Below(1U << 24));
        break;
      case 3:
        text += fmt::format(
            "node{}:{}:{} [{}] NCCL INFO Channel {:02}/0 : {}[{}] -> {}[{}] via "
            "P2P/IPC\n",
            rng.Below(8), rng.Below(9999), rng.Below(9999), rng.Below(8), rng.Below(32),
            rng.Below(64), rng.Below(8), rng.Below(64), rng.Below(8));
        break;
      default:
        text += fmt::format(
            "/usr/lib/python3/torch/utils/checkpoint.py:{}: UserWarning: the "
            "argument is not used any more\n",
            rng.Below(999));
    }
  }
}

double ThreadSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void Round(const std::string& text) {
  RuleEngine engine = *RuleEngine::Create(TenRules(), 8);
  Instant now{std::chrono::seconds(1)};
  engine.Begin(Generation(1), now);
  engine.Go(now);
  agent::LineFramer framer;
  std::size_t lines = 0;
  std::size_t firings = 0;
  const double begin = ThreadSeconds();
  for (std::size_t at = 0; at < text.size(); at += kRead) {
    now += std::chrono::microseconds(300);
    framer.Feed(std::string_view(text).substr(at, kRead), [&](std::string_view line, bool) {
      engine.TakeLine(Rank(0), LogRule::Stream::kOut, line, now);
      ++lines;
    });
    firings += engine.TakeFirings().size();
  }
  const double seconds = ThreadSeconds() - begin;
  fmt::print("{{\"lines\": {}, \"bytes\": {}, \"seconds\": {}, \"firings\": {}, \"losses\": {}}}\n",
             lines, text.size(), seconds, firings, engine.Matches(0));
}

}  // namespace

int main(int argc, char** argv) {
  std::string text;
  AppendLines(text);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  for (int i = 0; i < rounds; ++i) Round(text);
  return 0;
}

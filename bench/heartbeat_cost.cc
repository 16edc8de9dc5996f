// What does a step heartbeat cost the training thread (bar A10: at most 50 ns, no system call)?
// CPU time of many calls on a page shared with a reader that is not reading, five rounds, the
// median of each: what others do on the machine does not count.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "os/heartbeat.h"

namespace {

using muster::Generation;
using muster::MonotonicClock;
using muster::Rank;
using muster::os::HeartbeatReader;
using muster::os::HeartbeatWriter;
using muster::os::Phase;

constexpr int kRounds = 5;
constexpr int kCalls = 2'000'000;

double CpuNanoseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

template <typename Call>
double MedianNanoseconds(Call call) {
  std::array<double, kRounds> rounds{};
  for (double& round : rounds) {
    const double begin = CpuNanoseconds();
    for (int i = 0; i < kCalls; ++i) call(i);
    round = (CpuNanoseconds() - begin) / kCalls;
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[kRounds / 2];
}

}  // namespace

int main() {
  const auto reader = HeartbeatReader::Create(Rank(0));
  if (!reader) return 1;
  auto writer = HeartbeatWriter::Open(reader->fd(), Generation(1));
  if (!writer) return 1;
  const auto start = MonotonicClock::now();
  const double step = MedianNanoseconds([&](int i) {
    writer->Step({.step = static_cast<std::uint64_t>(i), .begin_ns = i, .total_us = 7});
  });
  const double enter = MedianNanoseconds(
      [&](int i) { writer->Enter(Phase::kForward, start + std::chrono::nanoseconds(i)); });
  const double with_clock =
      MedianNanoseconds([&](int) { writer->Enter(Phase::kForward, MonotonicClock::now()); });
  if (reader->Read().step != kCalls - 1) return 1;
  std::fprintf(stderr, "step record %.1f ns, phase %.1f ns, phase with reading the clock %.1f ns\n",
               step, enter, with_clock);
  std::printf("RESULT A10.heartbeat.seconds %.3e s\n", step * 1e-9);
  return 0;
}

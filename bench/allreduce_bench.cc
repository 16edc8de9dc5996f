// One rank of the S4 benchmark on our side: waits for commands of bench/S4_allreduce.py on stdin
// and answers with the seconds of each measured iteration. Commands: "MODE BYTES ITERATIONS\n"
// where MODE is staged (private memory) or arena.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coll/group.h"

namespace muster::coll {
namespace {

double Seconds(Instant from, Instant to) {
  return std::chrono::duration<double>(to - from).count();
}

/// The result must be right before its time counts.
bool SumsUp(Group& group, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 1000) + static_cast<float>(group.rank().value());
  if (!group.AllReduce(values, "check")) return false;
  const auto world = static_cast<float>(group.world());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != world * static_cast<float>(i % 1000) + world * (world - 1) / 2) return false;
  }
  return true;
}

/// Mean seconds of an iteration on this rank, between two barriers.
double Measure(Group& group, std::span<float> values, int iterations) {
  std::memset(values.data(), 0, values.size_bytes());
  if (!group.Barrier("start")) return -1;
  const Instant begin = MonotonicClock::now();
  for (int i = 0; i < iterations; ++i) {
    if (!group.AllReduce(values, "bench")) return -1;
  }
  return Seconds(begin, MonotonicClock::now()) / iterations;
}

int Serve(Group& group, std::size_t most_bytes) {
  auto memory = group.Alloc(most_bytes);
  if (!memory) return 3;
  std::vector<float> owned(most_bytes / sizeof(float));
  const std::span<float> arena(reinterpret_cast<float*>(memory->data()), owned.size());
  char mode[16];
  unsigned long long bytes = 0;
  int iterations = 0;
  while (std::scanf("%15s %llu %d", mode, &bytes, &iterations) == 3) {
    if (bytes > most_bytes || iterations < 1) return 4;
    const std::span<float> all = std::string_view(mode) == "arena" ? arena : std::span(owned);
    const std::span<float> values = all.first(bytes / sizeof(float));
    if (!SumsUp(group, values)) return 5;
    const double seconds = Measure(group, values, iterations);
    if (seconds < 0) return 6;
    std::printf("%.9f\n", seconds);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace muster::coll

int main(int argc, char** argv) {
  using namespace muster;
  if (argc != 5) {
    std::fprintf(stderr, "usage: allreduce_bench RANK WORLD ARENA_FD BYTES\n");
    return 2;
  }
  auto group = coll::Group::Open({.rank = Rank(static_cast<std::uint32_t>(std::atoi(argv[1]))),
                                  .world = static_cast<std::uint32_t>(std::atoi(argv[2])),
                                  .arena_fd = std::atoi(argv[3]),
                                  .timeout_ns = 60'000'000'000});
  if (!group) {
    std::fprintf(stderr, "%s\n", group.error().message().c_str());
    return 1;
  }
  return coll::Serve(*group, static_cast<std::size_t>(std::atoll(argv[4])));
}

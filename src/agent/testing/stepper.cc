// A program on our library without torch, for tests of the agent: it steps, sums a number over all
// ranks, checkpoints its sum and steps on from there after a restart. Installed as "muster-train"
// beside muster it is forked from its own zygote, as the real trainer is.
//
//   stepper [--steps N] [--step-ms MS] [--every K] [--fail-at STEP --fail-rank R --exit CODE]
//           [--fail-message TEXT] [--hang-dir DIR] [--save-ms MS] [--die-behind-save STEP]
//           [--linger-ms MS]
//
// In a run without an arena (of more than 64 ranks) it ends at once.
//
// The last line of rank 0 is "sum S": the same for every history of faults.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "agent/zygote/zygote.h"
#include "base/durable.h"
#include "coll/muster_coll.h"
#include "os/heartbeat.h"
#include "spec/env.h"
#include "train/checkpoint/save.h"

namespace {

using namespace muster;  // NOLINT: a program of one file

struct Flags {
  std::map<std::string, std::string> values;
  std::uint64_t Number(const std::string& name, std::uint64_t fallback) const {
    const auto found = values.find(name);
    if (found == values.end()) return fallback;
    return std::strtoull(found->second.c_str(), nullptr, 10);
  }
};

[[noreturn]] void Die(const std::string& text, int code = 1) {
  fmt::print(stderr, "stepper: {}\n", text);
  std::exit(code);
}

template <typename T>
T Need(Result<T> result) {
  if (!result) Die(result.error().ToString());
  return std::move(*result);
}

struct State {
  std::uint64_t step = 0;
  std::uint64_t sum = 0;
};

State Load(const spec::WorkerEnv& env) {
  State state;
  const auto text = PosixFiles().ReadAll(env.checkpoint_dir + "/newest", 1_KiB);
  if (text) state.step = std::strtoull(text->c_str(), nullptr, 10);
  if (text) state.sum = std::strtoull(text->c_str() + text->find(' '), nullptr, 10);
  return state;
}

void Save(const spec::WorkerEnv& env, const State& state) {
  const std::string generation = Need(PosixFiles().ReadAll(env.generation_file, 1_KiB));
  if (std::strtoull(generation.c_str(), nullptr, 10) != env.generation.value()) {
    Die("a newer generation runs; this checkpoint is refused");
  }
  if (!PosixFiles().Exists(env.checkpoint_dir)) {
    [[maybe_unused]] const Status made = PosixFiles().MakeDirectory(env.checkpoint_dir, 0755);
  }
  const std::string text = fmt::format("{} {}\n", state.step, state.sum);
  const Status saved = WriteDurably(PosixFiles(), env.checkpoint_dir + "/newest", AsBytes(text));
  if (!saved) Die(saved.error().ToString());
}

class Alone final : public checkpoint::Agreement {
  Result<bool> AllOk(bool ok) override { return ok; }
};

/// Commits a checkpoint of our format, and dies before anybody can be told of it.
[[noreturn]] void SaveAndDie(const spec::WorkerEnv& env, const State& state) {
  checkpoint::SaveRequest request{.folder = env.checkpoint_dir};
  request.manifest = {.step = state.step,
                      .generation = env.generation,
                      .world = 1,
                      .model = "stepper",
                      .index = {.length = 1,
                                .entries = {{.name = "sum", .offset = 0, .length = 1}},
                                .groups = {{.name = "param", .dtype = checkpoint::DType::kI64}}},
                      .optimizer_step = state.step,
                      .created_utc = FormatUtc(SystemClock().Wall())};
  const auto sum = std::as_bytes(std::span(&state.sum, 1));
  request.slices.push_back({.group = "param", .begin = 0, .data = sum});
  Alone alone;
  Need(checkpoint::Save(PosixFiles(), alone, request));
  ::raise(SIGKILL);
  std::abort();
}

/// Who failed only because another rank did says so.
void NeedColl(muster_coll_status status, const muster_coll_group* group) {
  if (status == MUSTER_COLL_OK) return;
  Die(muster_coll_message(group), status == MUSTER_COLL_ABORTED ? spec::kFollowerExit : 1);
}

muster_coll_group* OpenGroup(const spec::WorkerEnv& env) {
  muster_coll_options options{};
  options.abi_version = MUSTER_COLL_ABI_VERSION;
  options.rank = env.rank.value();
  options.world = env.world;
  options.arena_fd = env.arena_fd;
  options.generation = env.generation.value();
  muster_coll_group* group = nullptr;
  if (muster_coll_open(&options, &group) != MUSTER_COLL_OK) Die("cannot open the collectives");
  return group;
}

void MaybeFail(const Flags& flags, const spec::WorkerEnv& env, std::uint64_t step) {
  if (step != flags.Number("--fail-at", 0)) return;
  if (env.rank.value() != flags.Number("--fail-rank", 0)) return;
  const auto message = flags.values.find("--fail-message");
  Die(message == flags.values.end() ? "told to fail" : message->second,
      static_cast<int>(flags.Number("--exit", 3)));
}

/// Does once what the file DIR/rank-R of --hang-dir says, which goes away by that: an injector of
/// another process decides when. True: it leaves out this step's collective.
bool MaybeHang(const Flags& flags, const spec::WorkerEnv& env) {
  const auto folder = flags.values.find("--hang-dir");
  if (folder == flags.values.end()) return false;
  const std::string path = fmt::format("{}/rank-{}", folder->second, env.rank.value());
  const auto kind = PosixFiles().ReadAll(path, 1_KiB);
  if (!kind || ::unlink(path.c_str()) != 0) return false;
  if (*kind == "loop") {
    for (volatile std::uint64_t turn = 0;;) turn = turn + 1;
  } else if (*kind == "deadlock") {
    std::mutex mutex;
    mutex.lock();
    std::thread([&] { mutex.lock(); }).join();
  } else if (*kind == "read") {
    int ends[2];
    char byte = 0;
    if (::pipe(ends) == 0) [[maybe_unused]]
      const auto never = ::read(ends[0], &byte, 1);
  } else if (*kind == "pause") {
    ::poll(nullptr, 0, 1500);  // healthy: a slow disk
  }
  return *kind == "skip";
}

int Main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i + 1 < argc; i += 2) flags.values[argv[i]] = argv[i + 1];
  const spec::WorkerEnv env = Need(spec::ReadWorkerEnv(spec::ProcessEnv()));
  auto heartbeat = Need(os::HeartbeatWriter::Open(env.heartbeat_fd, env.generation));
  if (env.arena_fd < 0) return 0;  // more ranks than the collectives take: there is nothing to sum
  muster_coll_group* group = OpenGroup(env);
  State state = Load(env);
  std::int64_t resumed[2] = {static_cast<std::int64_t>(state.step),
                             static_cast<std::int64_t>(state.sum)};
  if (muster_coll_broadcast(group, resumed, 2, MUSTER_COLL_I64, 0, "resume") != MUSTER_COLL_OK) {
    Die(muster_coll_message(group));
  }
  state = {static_cast<std::uint64_t>(resumed[0]), static_cast<std::uint64_t>(resumed[1])};
  const std::uint64_t steps = flags.Number("--steps", 100);
  const std::uint64_t every = flags.Number("--every", 10);
  while (state.step < steps) {
    const Instant begin = MonotonicClock::now();
    heartbeat.Enter(os::Phase::kForward, begin);
    ::poll(nullptr, 0, static_cast<int>(flags.Number("--step-ms", 1)));
    MaybeFail(flags, env, state.step + 1);
    const bool skips = MaybeHang(flags, env);
    heartbeat.Enter(os::Phase::kComm, MonotonicClock::now());
    std::int64_t part = static_cast<std::int64_t>((state.step + 1) * (env.rank.value() + 1));
    if (!skips) {
      NeedColl(muster_coll_all_reduce(group, &part, 1, MUSTER_COLL_I64, MUSTER_COLL_SUM, "step"),
               group);
    }
    ++state.step;
    state.sum += static_cast<std::uint64_t>(part);
    if (state.step % every == 0) {
      heartbeat.Enter(os::Phase::kCheckpoint, MonotonicClock::now());
      ::poll(nullptr, 0, static_cast<int>(flags.Number("--save-ms", 0)));
      if (env.rank.value() == 0) Save(env, state);
      const bool dies = env.rank.value() == 0 && env.generation == Generation(1);
      if (dies && state.step == flags.Number("--die-behind-save", 0)) SaveAndDie(env, state);
      heartbeat.Enter(os::Phase::kComm, MonotonicClock::now());
      NeedColl(muster_coll_barrier(group, "saved"), group);
      heartbeat.Durable(state.step);
    }
    os::StepRecord record;
    record.step = state.step;
    record.begin_ns = begin.time_since_epoch().count();
    record.total_us = static_cast<std::uint32_t>((MonotonicClock::now() - begin).count() / 1000);
    record.loss = 1.0F / static_cast<float>(state.step);
    heartbeat.Step(record);
    if (env.rank.value() == 0) fmt::print("step {} loss {:.4f}\n", state.step, record.loss);
    std::fflush(stdout);
  }
  // Something at the end that is no step, as an evaluation.
  heartbeat.Enter(os::Phase::kEval, MonotonicClock::now());
  const bool lingers = env.generation == Generation(1);
  ::poll(nullptr, 0, lingers ? static_cast<int>(flags.Number("--linger-ms", 0)) : 0);
  heartbeat.Enter(os::Phase::kDone, MonotonicClock::now());
  muster_coll_close(group);
  if (env.rank.value() == 0) fmt::print("sum {}\n", state.sum);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto fd = agent::ZygoteFd(argc, argv)) return agent::RunZygote(*fd, &Main);
  return Main(argc, argv);
}

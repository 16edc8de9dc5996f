#include "agent/simulation/history.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <vector>

#include "agent/simulation/coordinator_model.h"
#include "agent/simulation/fault_plan.h"
#include "agent/simulation/record_check.h"
#include "base/memory_files.h"

namespace muster::agent::simulation {
namespace {

constexpr nanoseconds kBackWithin = seconds(300);  // after the last fault
constexpr nanoseconds kEndWithin = std::chrono::minutes(30);
constexpr nanoseconds kLook = milliseconds(100);

class History {
 public:
  explicit History(const HistoryOptions& options);
  HistoryResult Play();

 private:
  void DrawJob(std::uint32_t agents);
  void DrawPolicy();
  std::unique_ptr<CoordinatorModel> MakeCoordinator();
  void MakeFolder();
  void Turn();
  void Watch();
  void CheckBudgets(const JobState& state);
  void CheckEnd();
  void LetAgentsEnd();

  const HistoryOptions& given_;
  World world_;
  Fate fate_;
  Network network_;
  Truth truth_;
  Ground ground_;
  std::vector<std::unique_ptr<AgentModel>> agents_;
  RunOptions options_;
  MemoryFiles files_;
  Fd said_;
  std::unique_ptr<HostModel> host_;
  std::unique_ptr<FaultPlan> faults_;
  std::unique_ptr<CoordinatorModel> run_;
  Generation newest_{};
  bool back_ = false;
  std::uint32_t spares_ = 0;
};

Program DrawProgram(World& world, std::uint32_t agents) {
  Program program;
  program.ours = world.Chance(0.75);
  program.in_place = program.ours && world.Chance(0.7);
  program.zygote = world.Chance(0.5);
  program.steps = 20 + world.Below(100);
  program.durable_every = 1 + world.Below(20);
  if (agents > 100) {
    program.steps = 60;
    program.publish = seconds(5);
  }
  return program;
}

/// None: the coordinator's host does all of it.
std::uint32_t DrawAgents(World& world, std::uint32_t asked) {
  if (asked != 0) return asked;
  if (world.Chance(0.2)) return 0;
  return 3 + static_cast<std::uint32_t>(world.Below(world.Chance(0.7) ? 6 : 18));
}

History::History(const HistoryOptions& options)
    : given_(options),
      world_(options.seed),
      fate_(world_),
      network_(world_, fate_),
      truth_(world_, DrawProgram(world_, options.agents)),
      ground_{world_, fate_, network_, truth_, truth_.program(), {}},
      said_(::memfd_create("said", MFD_CLOEXEC)) {
  DrawJob(DrawAgents(world_, options.agents));
  DrawPolicy();
  faults_ = std::make_unique<FaultPlan>(ground_, agents_, host_.get());
}

void History::DrawJob(std::uint32_t agents) {
  spares_ = agents > 3 ? static_cast<std::uint32_t>(world_.Below(4)) : 0;
  const bool with_host = agents == 0 || (agents <= 100 && world_.Chance(0.4));
  options_.nodes = agents - spares_ + (with_host ? 1 : 0);
  options_.least_nodes = world_.Chance(0.3)
                             ? 1 + static_cast<std::uint32_t>(world_.Below(options_.nodes))
                             : options_.nodes;
  const std::uint32_t per_node = agents > 100 ? 1 : 1 + static_cast<std::uint32_t>(world_.Below(3));
  options_.ranks = options_.nodes * per_node;
  options_.leads_only = !with_host;
  options_.listen = "127.0.0.1:0";
  options_.version = "1";
  options_.command = {"job"};
  options_.program = "/bin/job";
  options_.job_yaml = "kind: Job\n";
  if (ground_.program.zygote) options_.zygote = {"job", "--zygote"};
  if (with_host) host_ = std::make_unique<HostModel>(ground_, per_node);
  for (std::uint32_t i = 0; i < agents; ++i) {
    agents_.push_back(std::make_unique<AgentModel>(ground_, fmt::format("n{}", i)));
  }
}

void History::DrawPolicy() {
  Policy& policy = options_.policy;
  policy.process_restarts = static_cast<std::uint32_t>(world_.Below(6));
  policy.full_restarts = static_cast<std::uint32_t>(world_.Below(3));
  policy.in_place = world_.Chance(0.8);
  policy.grace = world_.Delay({}, seconds(5));
  if (world_.Chance(0.2)) policy.eval_period = seconds(10 + world_.Below(40));
}

/// Files are in memory; what the run asks the kernel for itself is in a folder that is empty.
void History::MakeFolder() {
  std::filesystem::remove(given_.folder + "/join-token");
  std::string path;
  for (const auto& part : std::filesystem::path(given_.folder)) {
    if (part == "/") continue;
    path += "/" + part.string();
    static_cast<void>(files_.MakeDirectory(path, 0700));
  }
}

std::unique_ptr<CoordinatorModel> History::MakeCoordinator() {
  MakeFolder();
  auto folder =
      RunFolder::Create(files_, given_.folder, {.id = "5eed", .name = "job"}, world_.clock());
  if (!folder) {
    world_.Violate("no folder: " + folder.error().ToString());
    return nullptr;
  }
  return std::make_unique<CoordinatorModel>(
      ground_, CoordinatorOptions{&options_, *std::move(folder), said_.get(), host_.get()});
}

/// To the next thing that is due, in the coordinator or elsewhere.
void History::Turn() {
  const Instant next = std::min(world_.loop().NextDue(), run_->Next());
  if (next > world_.Now()) world_.clock().Advance(next - world_.Now());
  static_cast<void>(world_.loop().RunOnce({}));
  run_->Turn();
}

/// Independent of what the planner counts with: how many restarts there may be within a period.
void History::CheckBudgets(const JobState& state) {
  const Policy& policy = options_.policy;
  const auto recent = [&](const std::vector<Instant>& times) {
    return std::ranges::count_if(
        times, [&](Instant time) { return world_.Now() - time < policy.eval_period; });
  };
  if (recent(state.process_restarts) > policy.process_restarts ||
      recent(state.full_restarts) > policy.full_restarts) {
    world_.Violate("more restarts than the policy allows");
  }
  // A fork server that does not answer costs nothing of a budget: once a run.
  // A start in which a coordinator dies is done again, by the one that follows.
  const std::uint32_t allowed =
      MostRestarts(policy) + (ground_.program.zygote ? 1 : 0) + run_->deaths();
  if (policy.eval_period > std::chrono::hours(1) && state.generation.value() > 1 + allowed) {
    world_.Violate(
        fmt::format("generation {} with {} restarts allowed", state.generation.value(), allowed));
  }
}

void History::Watch() {
  if (ground_.run_over) return;
  world_.loop().After(kLook, [this] { Watch(); });
  if (run_->state() == nullptr) return;
  const JobState& state = *run_->state();
  if (state.generation < newest_) world_.Violate("a generation came back");
  newest_ = state.generation;
  CheckBudgets(state);
  const nanoseconds since = world_.Passed() - faults_->until();
  back_ = back_ || (since > nanoseconds(0) && state.phase == Phase::kRunning &&
                    truth_.Works(state.generation));
  if (since > kBackWithin && !back_ && !state.verdict) {
    world_.Violate("not at work again long after the last fault");
  }
  if (since > kEndWithin) world_.Violate("the run does not end");
}

void History::CheckEnd() {
  const auto& verdict = run_->state()->verdict;
  if (!verdict) return world_.Violate("the run ended without a verdict");
  world_.Note(fmt::format("the run ended: {}: {}", verdict->exit_code, verdict->reason));
  if (verdict->reason.empty()) world_.Violate("the run ended without a reason");
  if (verdict->succeeded && !truth_.Works(run_->state()->generation)) {
    world_.Violate("the run succeeded, and its work is not done");
  }
  if (!faults_->any() && (!verdict->succeeded || run_->state()->generation != Generation(1))) {
    world_.Violate("nothing went wrong, and the run did not just succeed: " + verdict->reason);
  }
  CheckRecord(files_, given_.folder + "/events.jsonl", truth_,
              {.rough = faults_->rough(), .starts_fail = true}, world_);
}

/// The coordinator is gone: whoever did not hear of the end finds out by itself.
void History::LetAgentsEnd() {
  ground_.run_over = true;
  const Instant limit = world_.Now() + ground_.patience + std::chrono::minutes(2);
  while (world_.Now() < limit && !world_.violation()) {
    if (!world_.loop().RunOnce(seconds(1))) break;
  }
  if (world_.violation()) return;
  if (truth_.living() > 0) world_.Violate("workers outlive the run: " + truth_.Living());
  for (const auto& agent : agents_) {
    if (agent->runs()) world_.Violate(agent->name() + " outlives the run");
  }
}

std::string ReadAll(int fd) {
  std::string text(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

HistoryResult History::Play() {
  HistoryResult result;
  result.plan = fmt::format(
      "{} agents{}, {} to {} nodes of {} ranks, {}{}{}, {} steps, restarts {} + {}{}; {}",
      agents_.size(), host_ ? " and the coordinator's host" : "", options_.least_nodes,
      options_.nodes, options_.ranks / options_.nodes, ground_.program.ours ? "ours" : "foreign",
      ground_.program.in_place ? ", in place" : "", ground_.program.zygote ? ", zygote" : "",
      ground_.program.steps, options_.policy.process_restarts, options_.policy.full_restarts,
      options_.policy.in_place ? "" : ", never in place", faults_->Describe());
  world_.Note(result.plan);
  run_ = MakeCoordinator();
  if (!world_.violation()) {
    faults_->Begin();
    for (const auto& agent : agents_) agent->BeginIn(world_.Delay({}, seconds(3)));
    Watch();
    while (!run_->over() && !world_.violation()) Turn();
    RunOutcome outcome;
    if (run_->over()) outcome = run_->End();
    if (!world_.violation()) CheckEnd();
    LetAgentsEnd();
    const auto verdict = run_->state() != nullptr ? run_->state()->verdict : std::nullopt;
    if (verdict) result.end = fmt::format("{}: {}", outcome.exit_code, verdict->reason);
    result.generations = newest_.value();
  }
  result.violation = world_.violation();
  result.story = world_.Story();
  result.said = ReadAll(said_.get());
  result.digest = world_.digest();
  result.virtual_seconds = std::chrono::duration<double>(world_.Passed()).count();
  return result;
}

}  // namespace

HistoryResult Play(const HistoryOptions& options) { return History(options).Play(); }

}  // namespace muster::agent::simulation

#include "train/worker.h"

#include <algorithm>
#include <iterator>

namespace muster::train {
namespace {

Result<coll::Group> OpenGroup(const spec::WorkerEnv& env, int arena_fd) {
  return coll::Group::Open(
      {.rank = env.rank, .world = env.world, .arena_fd = arena_fd, .generation = env.generation});
}

// What another process holds, a full disk or a lost connection may be over the next time.
bool IsOfWhatWasGiven(Code code) {
  constexpr Code kGiven[] = {Code::kInvalid, Code::kNotFound, Code::kPrecondition, Code::kDenied,
                             Code::kDataLoss};
  return std::ranges::find(kGiven, code) != std::end(kGiven);
}

}  // namespace

Result<Worker> OpenWorker(const spec::WorkerEnv& env) {
  auto arithmetic = MUSTER_TRY(PinArithmetic());
  auto heartbeat = MUSTER_TRY(os::HeartbeatWriter::Open(env.heartbeat_fd, env.generation));
  heartbeat.Enter(os::Phase::kInit, SystemClock().Now());
  os::RecoveryLink link;
  if (env.recovery_fd >= 0) link = os::RecoveryLink(Fd(env.recovery_fd));
  auto group = MUSTER_TRY(OpenGroup(env, env.arena_fd));
  return Worker{.env = env,
                .arithmetic = std::move(arithmetic),
                .group = std::move(group),
                .heartbeat = std::move(heartbeat),
                .link = std::move(link),
                .files = PosixFiles(),
                .clock = SystemClock()};
}

Status GoOn(Worker& worker, const os::Commit& commit) {
  worker.env.generation = commit.generation;
  worker.heartbeat.GoOnAs(commit.generation);
  worker.group = MUSTER_TRY(OpenGroup(worker.env, commit.arena.get()));
  return Ok();
}

void NoteRefusal(Worker& worker, const Error& error) {
  if (worker.heartbeat.HasStepped() || !IsOfWhatWasGiven(error.code())) return;
  worker.heartbeat.Enter(os::Phase::kRefused, worker.clock.Now());
}

void NoteDataLoss(Worker& worker, const Error& error) {
  if (error.code() != Code::kDataLoss) return;
  worker.heartbeat.Enter(os::Phase::kRefused, worker.clock.Now());
}

}  // namespace muster::train

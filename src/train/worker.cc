#include "train/worker.h"

namespace muster::train {

Result<Worker> OpenWorker(const spec::WorkerEnv& env) {
  auto arithmetic = MUSTER_TRY(PinArithmetic());
  auto heartbeat = MUSTER_TRY(os::HeartbeatWriter::Open(env.heartbeat_fd, env.generation));
  heartbeat.Enter(os::Phase::kInit, SystemClock().Now());
  auto group = MUSTER_TRY(coll::Group::Open({.rank = env.rank,
                                             .world = env.world,
                                             .arena_fd = env.arena_fd,
                                             .generation = env.generation}));
  return Worker{.env = env,
                .arithmetic = std::move(arithmetic),
                .group = std::move(group),
                .heartbeat = std::move(heartbeat),
                .files = PosixFiles(),
                .clock = SystemClock()};
}

}  // namespace muster::train

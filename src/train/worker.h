#pragma once
// What a training process is given by its host, opened: the collective group, the heartbeat page,
// pinned arithmetic. Made once at start, after a fork, by the training thread that then owns it.

#include "base/clock.h"
#include "base/file_system.h"
#include "base/result.h"
#include "coll/group.h"
#include "os/heartbeat.h"
#include "os/recovery_link.h"
#include "spec/env.h"
#include "train/arithmetic.h"

namespace muster::train {

struct Worker {
  spec::WorkerEnv env;
  Arithmetic arithmetic;
  coll::Group group;
  os::HeartbeatWriter heartbeat;
  os::RecoveryLink link;
  FileSystem& files;
  const Clock& clock;

  bool IsFirst() const { return group.rank().value() == 0; }
};

Result<Worker> OpenWorker(const spec::WorkerEnv& env);
/// Says on the heartbeat page that another start would end in the same way: `error` is of what the
/// worker was given, flags, data or checkpoints, and this rank finished no step of the run.
void NoteRefusal(Worker& worker, const Error& error);
/// The same at any step, of an error of the dataset: one that became shorter or is damaged stays
/// so.
void NoteDataLoss(Worker& worker, const Error& error);

/// After the death of another rank: the same worker in the next generation. Memory of the old group
/// is gone. An error leaves a worker without a group.
Status GoOn(Worker& worker, const os::Commit& commit);

}  // namespace muster::train

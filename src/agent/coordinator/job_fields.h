#pragma once
// The fields of what the coordinator knows of a job, said once for whoever writes or reads them
// (keep/archive.h, wire/).

#include "agent/coordinator/job_state.h"
#include "agent/run/fault_record.h"

namespace muster::agent {

template <typename A>
void Fields(A& a, RuleKill& m) {
  a("name", m.name), a("why", m.why);
}
template <typename A>
void Fields(A& a, Ending& m) {
  a("code", m.code), a("signal", m.signal), a("start_error", m.start_error);
  a("never_found", m.never_found), a("time_ns", m.time), a("hang", m.hang);
  a("still", m.still);
  a("rule", m.rule), a("advice", m.advice), a("oom_kills", m.oom_kills);
  a("with", m.with);
}
template <typename A>
void Fields(A& a, RankStatus& m) {
  a("state", m.state), a("steps", m.steps), a("step", m.step), a("durable", m.durable);
  a("spawned", m.spawned), a("carries", m.carries), a("quiesced", m.quiesced);
  a("doomed", m.doomed), a("refused", m.refused), a("alive", m.alive);
  a("ending", m.ending), a("exception", m.exception);
}
template <typename A>
void Fields(A& a, Fault& m) {
  a("rank", m.rank), a("generation", m.generation), a("spawned", m.spawned);
  a("ending", m.ending), a("step", m.step), a("steps", m.steps), a("refused", m.refused);
  a("exception", m.exception), a("alive", m.alive), a("lived", m.lived), a("others", m.others);
}
template <typename A>
void Fields(A& a, Verdict& m) {
  a("succeeded", m.succeeded), a("exit_code", m.exit_code), a("reason", m.reason);
}
template <typename A>
void Fields(A& a, JobState& m) {
  a("phase", m.phase), a("generation", m.generation), a("ranks", m.ranks);
  a("use_zygote", m.use_zygote), a("zygote_served", m.zygote_served);
  a("without_shim", m.without_shim), a("deadline", m.deadline);
  a("slowest_step", m.slowest_step), a("aborted", m.aborted), a("begun", m.begun);
  a("in_place", m.in_place), a("stalled", m.stalled), a("resumed_at", m.resumed_at);
  a("fault", m.fault), a("last_fault", m.last_fault), a("crashes", m.crashes), a("began", m.began);
  a("worked", m.worked), a("early_twins", m.early_twins), a("next", m.next),
      a("counted", m.counted);
  a("verdict", m.verdict), a("interrupts", m.interrupts);
  a("process_restarts", m.process_restarts), a("full_restarts", m.full_restarts);
  a("restarts", m.restarts), a("best_durable", m.best_durable);
  a("best_applied", m.best_applied), a("without_progress", m.without_progress);
}
/// Without what the options say.
template <typename A>
void Fields(A& a, FaultRecord& m) {
  a("fault", m.fault), a("decision", m.decision), a("environment", m.environment);
  a("ranks", m.ranks), a("paused", m.paused), a("stopped", m.stopped);
  a("out_tail", m.out_tail), a("err_tail", m.err_tail), a("error_file", m.error_file);
}

}  // namespace muster::agent

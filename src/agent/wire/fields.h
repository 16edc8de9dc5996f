#pragma once
// The fields of every message, said once for whoever writes, reads or checks them: an archive is
// called with each name and value. Only for wire.cc.

#include <string_view>

#include "agent/coordinator/job_fields.h"
#include "agent/node/messages.h"

namespace muster::agent::wire {

// The name of each message; what has none stays within a process.

constexpr std::string_view NameOf(const order::Seat*) { return "seat"; }
constexpr std::string_view NameOf(const order::Renew*) { return "renew"; }
constexpr std::string_view NameOf(const order::Start*) { return "start"; }
constexpr std::string_view NameOf(const order::Go*) { return "go"; }
constexpr std::string_view NameOf(const order::Pause*) { return "pause"; }
constexpr std::string_view NameOf(const order::Abort*) { return "abort"; }
constexpr std::string_view NameOf(const order::Stop*) { return "stop"; }
constexpr std::string_view NameOf(const order::Kill*) { return "kill"; }
constexpr std::string_view NameOf(const order::Signal*) { return "signal"; }
constexpr std::string_view NameOf(const order::TellWords*) { return "tell_words"; }
constexpr std::string_view NameOf(const order::TakeStacks*) { return "take_stacks"; }
constexpr std::string_view NameOf(const order::End*) { return "end"; }
constexpr std::string_view NameOf(const report::ZygoteReady*) { return "zygote_ready"; }
constexpr std::string_view NameOf(const report::ZygoteBroken*) { return "zygote_broken"; }
constexpr std::string_view NameOf(const report::Loading*) { return "loading"; }
constexpr std::string_view NameOf(const report::Begun*) { return "begun"; }
constexpr std::string_view NameOf(const report::Started*) { return "started"; }
constexpr std::string_view NameOf(const report::Exited*) { return "exited"; }
constexpr std::string_view NameOf(const report::Standing*) { return "standing"; }
constexpr std::string_view NameOf(const report::Progress*) { return "progress"; }
constexpr std::string_view NameOf(const report::Stopped*) { return "stopped"; }
constexpr std::string_view NameOf(const report::RuleFired*) { return "rule_fired"; }
constexpr std::string_view NameOf(const report::Words*) { return "words"; }
constexpr std::string_view NameOf(const report::StacksTaken*) { return "stacks_taken"; }
constexpr std::string_view NameOf(const report::Stacks*) { return "stacks"; }
constexpr std::string_view NameOf(const report::Losses*) { return "losses"; }
constexpr std::string_view NameOf(const report::Failed*) { return "failed"; }
constexpr std::string_view NameOf(const report::Gone*) { return "gone"; }
constexpr std::string_view NameOf(const report::Lost*) { return "lost"; }
constexpr std::string_view NameOf(const report::Ended*) { return "ended"; }

template <typename Message>
concept OnWire = requires(const Message* message) { NameOf(message); };

// Parts of messages; RuleKill and Ending are coordinator/job_fields.h's.

template <typename A>
void Fields(A& a, os::StepRecord& m) {
  a("seq", m.sequence), a("step", m.step), a.Time("begin_ns", m.begin_ns);
  a("total_us", m.total_us), a("gen", m.generation), a("loss", m.loss), a("phase_us", m.phase_us);
}
template <typename A>
void Fields(A& a, os::Pulse& m) {
  a("gen", m.generation), a.Enum("phase", m.phase, os::kPhaseCount), a("step", m.step);
  a("durable", m.durable_step), a("collective", m.collective), a("since_ns", m.phase_since);
}
template <typename A>
void Fields(A& a, os::ProcessSight& m) {
  a.Enum("state", m.state, 6), a("cpu_ticks", m.cpu_ticks), a("start_ticks", m.start_ticks);
}
template <typename A>
void Fields(A& a, report::Progress::Step& m) {
  a("rank", m.rank), a("record", m.record);
}
template <typename A>
void Fields(A& a, report::Progress::Place& m) {
  a("rank", m.rank), a("pulse", m.pulse), a("process", m.sight), a("io", m.io);
}
template <typename A>
void Fields(A& a, LogId& m) {
  a("rank", m.rank), a("gen", m.generation), a.Enum("stream", m.stream, 2);
}
template <typename A>
void Fields(A& a, LogLoss& m) {
  a("log", m.id), a("bytes", m.bytes), a.Enum("why", m.why, 3);
}
template <typename A>
void Fields(A& a, rules::Firing& m) {
  a("rule", m.rule), a("name", m.name), a.Enum("action", m.action, 6), a("gen", m.generation);
  a("rank", m.rank), a("why", m.why), a("time_ns", m.time);
}

// Orders.

template <typename A>
void Fields(A& a, order::Seat& m) {
  a("first", m.first);
}
template <typename A>
void Fields(A&, order::Renew&) {}
template <typename A>
void Fields(A& a, order::Start& m) {
  a("gen", m.generation), a("via_zygote", m.via_zygote), a("restart_count", m.restart_count);
  a("ranks", m.ranks), a("keepers", m.keepers), a("world", m.world);
  a("master_addr", m.master_addr), a("master_port", m.master_port);
}
template <typename A>
void Fields(A&, order::Go&) {}
template <typename A>
void Fields(A&, order::Pause&) {}
template <typename A>
void Fields(A& a, order::Abort& m) {
  a("reason", m.reason);
}
template <typename A>
void Fields(A& a, order::Stop& m) {
  a("gen", m.generation), a("signal", m.signal), a("grace_ns", m.grace);
}
template <typename A>
void Fields(A& a, order::Kill& m) {
  a("rank", m.rank);
}
template <typename A>
void Fields(A& a, order::Signal& m) {
  a("number", m.number);
}
template <typename A>
void Fields(A& a, order::TellWords& m) {
  a("rank", m.rank), a("spawned", m.spawned), a("gen", m.generation);
  a("restart_count", m.restart_count), a("world", m.world);
  a("master_addr", m.master_addr), a("master_port", m.master_port);
}
template <typename A>
void Fields(A& a, order::TakeStacks& m) {
  a("id", m.id);
}
template <typename A>
void Fields(A&, order::End&) {}

// Reports.

template <typename A>
void Fields(A& a, report::ZygoteReady& m) {
  a("pid", m.pid);
}
template <typename A>
void Fields(A& a, report::ZygoteBroken& m) {
  a("why", m.why);
}
template <typename A>
void Fields(A& a, report::Loading& m) {
  a("lasted_ns", m.lasted), a("pid", m.pid);
}
template <typename A>
void Fields(A& a, report::Begun& m) {
  a("gen", m.generation);
}
template <typename A>
void Fields(A& a, report::Started& m) {
  a("rank", m.rank), a("spawned", m.spawned), a("pid", m.pid), a("forked", m.forked);
}
template <typename A>
void Fields(A& a, report::Exited& m) {
  a("rank", m.rank), a("spawned", m.spawned), a("pid", m.pid);
  a("ending", m.ending), a("exception", m.exception);
}
template <typename A>
void Fields(A& a, report::Standing& m) {
  a("rank", m.rank), a("spawned", m.spawned), a("quiesced", m.quiesced);
}
template <typename A>
void Fields(A& a, report::Progress& m) {
  a("steps", m.steps), a("places", m.places), a("complete", m.complete), a("missed", m.missed);
}
template <typename A>
void Fields(A& a, report::Stopped& m) {
  a("gen", m.generation), a("left", m.left);
}
template <typename A>
void Fields(A& a, report::RuleFired& m) {
  a("firing", m.firing);
}
template <typename A>
void Fields(A& a, report::Words& m) {
  a("rank", m.rank), a("spawned", m.spawned), a("stdout_tail", m.out_tail);
  a("stderr_tail", m.err_tail), a("error_file", m.error_file), a("environment", m.environment);
}
template <typename A>
void Fields(A& a, report::StacksTaken& m) {
  a("id", m.id), a("ranks", m.ranks);
}
template <typename A>
void Fields(A& a, report::Stacks& m) {
  a("id", m.id), a("ranks", m.ranks), a("stacks", m.json);
}
template <typename A>
void Fields(A& a, report::Losses& m) {
  a("logs", m.logs), a("rules_missed", m.rules_missed);
}
template <typename A>
void Fields(A& a, report::Failed& m) {
  a("error", m.error);
}
template <typename A>
void Fields(A& a, report::Gone& m) {
  a("reason", m.reason);
}
template <typename A>
void Fields(A& a, report::Lost& m) {
  a("reason", m.reason);
}
template <typename A>
void Fields(A& a, report::Ended& m) {
  a("hung_writer", m.hung_writer), a("left_cgroup", m.left_cgroup);
}

}  // namespace muster::agent::wire

#pragma once
// What a line of the kernel's log says about the machine: a table of rules, from the record to a
// trouble with its weight. NVIDIA's XID codes: the meanings are those of NVIDIA's XID catalogue, in
// our words; docs/reference/doctor.md has the table. Pure; any bytes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/health/kmsg_record.h"

namespace muster::agent::health {

struct Trouble {
  enum class Severity {
    kNote,    ///< a program's fault, or harmless by itself
    kWorse,   ///< healed, but a sign of wear
    kSevere,  ///< the machine, or one device of it, is not fit for a job
  };
  std::string kind;  ///< "xid", "oom", "io_error", "link_down", "machine_check", "hung_task", …
  Severity severity = Severity::kNote;
  std::optional<std::uint32_t> code;  ///< of an XID
  std::string device;                 ///< "PCI:0000:3b:00", "sda", "eth0"; empty: unknown
  std::optional<std::int64_t> pid;    ///< of the process that it struck
  std::string meaning;                ///< in our words
  bool operator==(const Trouble&) const = default;
};

std::string_view NameOf(Trouble::Severity severity);  ///< "note", "worse", "severe"
/// How much it adds to a node's score: 0, 0.25, 1.
double WeightOf(Trouble::Severity severity);

/// Nothing for a line that says nothing of the machine, or that a program wrote.
std::optional<Trouble> JudgeKernelLine(const KmsgRecord& record);

}  // namespace muster::agent::health

#include "agent/health/kernel_rules.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace muster::agent::health {
namespace {

using Severity = Trouble::Severity;

struct Xid {
  std::uint32_t code;
  Severity severity;
  std::string_view meaning;
};

constexpr std::array<Xid, 23> kXids = {{
    {13, Severity::kNote, "a kernel of the program failed on the GPU"},
    {31, Severity::kNote, "the program used GPU memory that it does not have"},
    {32, Severity::kWorse, "commands to the GPU arrived damaged"},
    {43, Severity::kNote, "the GPU stopped a program that did something wrong"},
    {45, Severity::kNote, "work was taken off the GPU because its program ended"},
    {48, Severity::kSevere, "GPU memory lost bits that could not be corrected"},
    {61, Severity::kSevere, "the GPU's controller stopped"},
    {62, Severity::kSevere, "the GPU's controller halted"},
    {63, Severity::kWorse, "a row of GPU memory is replaced at the next reset"},
    {64, Severity::kSevere, "a row of GPU memory could not be replaced"},
    {68, Severity::kNote, "the GPU's video unit failed"},
    {69, Severity::kNote, "a kernel of the program failed on the GPU"},
    {74, Severity::kSevere, "a link between GPUs (NVLink) failed"},
    {79, Severity::kSevere, "the GPU has left the bus"},
    {92, Severity::kWorse, "GPU memory corrects errors at a high rate"},
    {94, Severity::kWorse, "GPU memory lost bits of one program, which must be started again"},
    {95, Severity::kSevere, "GPU memory lost bits, and any program may have them"},
    {109, Severity::kNote, "a switch between programs on the GPU took too long"},
    {119, Severity::kSevere, "the GPU's system processor does not answer"},
    {120, Severity::kSevere, "the GPU's system processor failed"},
    {136, Severity::kSevere, "a link between GPUs could not be trained"},
    {140, Severity::kSevere, "GPU memory lost bits that could not be corrected"},
    {149, Severity::kSevere, "a link between GPUs (NVLink) failed"},
}};

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What stands behind `mark` up to one of `ends`; empty when there is no mark.
std::string After(std::string_view text, std::string_view mark, std::string_view ends) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + mark.size());
  return std::string(rest.substr(0, std::min(rest.find_first_of(ends), rest.size())));
}

template <typename Number>
std::optional<Number> ToNumber(std::string_view text) {
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  Number number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop == text.data()) return std::nullopt;
  return number;
}

Trouble Make(std::string_view kind, Severity severity, std::string device,
             std::string_view meaning) {
  Trouble trouble;
  trouble.kind = kind;
  trouble.severity = severity;
  trouble.device = std::move(device);
  trouble.meaning = meaning;
  return trouble;
}

/// "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
std::optional<Trouble> JudgeXid(std::string_view text) {
  const bool nvswitch = Has(text, "SXid (");
  if (!nvswitch && !Has(text, "NVRM: Xid (")) return std::nullopt;
  const std::string device = After(text, "Xid (", ")");
  const auto code = ToNumber<std::uint32_t>(After(text, "): ", ","));
  Trouble trouble = Make(
      nvswitch ? "sxid" : "xid", Severity::kWorse, device,
      nvswitch ? "a switch between GPUs reports an error" : "the GPU's driver reports an error");
  trouble.code = code;
  trouble.pid = ToNumber<std::int64_t>(After(text, "pid=", ", "));
  if (nvswitch && Has(text, "Non-fatal")) trouble.severity = Severity::kNote;
  if (nvswitch && Has(text, " Fatal")) trouble.severity = Severity::kSevere;
  if (nvswitch || !code) return trouble;
  const auto* const known = std::ranges::find(kXids, *code, &Xid::code);
  if (known != kXids.end()) {
    trouble.severity = known->severity;
    trouble.meaning = known->meaning;
  }
  return trouble;
}

/// "Out of memory: Killed process 71 (python) …", "Memory cgroup out of memory: Killed process …"
std::optional<Trouble> JudgeOom(std::string_view text) {
  if (!Has(text, "ut of memory: Kill")) return std::nullopt;
  const bool group = Has(text, "emory cgroup out of memory");
  Trouble trouble = Make("oom", Severity::kNote, "",
                         group ? "a process was killed at the memory limit of its group"
                               : "a process was killed because the machine's memory is used up");
  trouble.pid = ToNumber<std::int64_t>(After(text, "rocess ", " ,"));
  return trouble;
}

std::optional<Trouble> JudgeDisk(std::string_view text) {
  if (Has(text, "I/O error, dev ")) {
    return Make("io_error", Severity::kWorse, After(text, "I/O error, dev ", ", "),
                "a disk could not read or write");
  }
  if (Has(text, "Buffer I/O error on dev ")) {
    return Make("io_error", Severity::kWorse, After(text, "on dev ", ", "),
                "a disk could not read or write");
  }
  if (Has(text, "-fs error (device ")) {
    return Make("fs_error", Severity::kSevere, After(text, "(device ", ")"),
                "a file system is damaged");
  }
  if (Has(text, "emounting filesystem read-only")) {
    return Make("fs_error", Severity::kSevere, After(text, "(", "):"),
                "a file system takes no more writes");
  }
  if (text.starts_with("XFS (") && (Has(text, "Corruption") || Has(text, "metadata I/O error"))) {
    return Make("fs_error", Severity::kSevere, After(text, "XFS (", ")"),
                "a file system is damaged");
  }
  return std::nullopt;
}

/// The word in front of `mark`, cut at a colon: "mlx5_core 0000:3b:00.0 ib0: Link down" → "ib0".
std::string WordBefore(std::string_view text, std::string_view mark) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return {};
  std::string_view head = text.substr(0, at);
  while (!head.empty() && (head.back() == ' ' || head.back() == ':')) head.remove_suffix(1);
  const auto blank = head.find_last_of(' ');
  return std::string(blank == std::string_view::npos ? head : head.substr(blank + 1));
}

std::optional<Trouble> JudgeLink(std::string_view text) {
  for (const std::string_view mark :
       {"NIC Link is Down", "Link is Down", "Link down", "link down"}) {
    if (Has(text, mark))
      return Make("link_down", Severity::kWorse, WordBefore(text, mark),
                  "a network link went down");
  }
  return std::nullopt;
}

std::optional<Trouble> JudgeHardware(std::string_view text) {
  if (Has(text, "achine check events logged"))
    return Make("machine_check", Severity::kWorse, "", "the processor reports hardware errors");
  if (Has(text, "[Hardware Error]") && Has(text, "ncorrected"))
    return Make("machine_check", Severity::kSevere, "",
                "the processor reports a hardware error that was not corrected");
  if (text.starts_with("EDAC ") && Has(text, " UE "))
    return Make("memory_error", Severity::kSevere, After(text, "EDAC ", ":"),
                "memory lost bits that could not be corrected");
  if (text.starts_with("EDAC ") && Has(text, " CE "))
    return Make("memory_error", Severity::kWorse, After(text, "EDAC ", ":"),
                "memory corrected an error");
  if (Has(text, "PCIe Bus Error: severity=Uncorrect"))
    return Make("pcie_error", Severity::kSevere, WordBefore(text, "PCIe Bus Error"),
                "a device on the bus failed");
  if (Has(text, "temperature above threshold"))
    return Make("throttled", Severity::kWorse, After(text, "", ":"),
                "a processor is too hot and runs slower");
  return std::nullopt;
}

std::optional<Trouble> JudgeStuck(std::string_view text) {
  if (text.starts_with("INFO: task ") && Has(text, " blocked for more than ")) {
    Trouble trouble =
        Make("hung_task", Severity::kWorse, "", "a process waits in the kernel, mostly for a disk");
    const std::string name = After(text, "INFO: task ", " ");
    trouble.pid = ToNumber<std::int64_t>(std::string_view(name).substr(name.rfind(':') + 1));
    return trouble;
  }
  if (Has(text, "BUG: soft lockup") || Has(text, "hard LOCKUP")) {
    return Make("lockup", Severity::kSevere, After(text, "CPU#", " "),
                "a core hangs in the kernel");
  }
  if (text.starts_with("Kernel panic") || text.starts_with("kernel BUG at ")) {
    return Make("kernel_bug", Severity::kSevere, "", "the kernel itself failed");
  }
  return std::nullopt;
}

}  // namespace

std::string_view NameOf(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWorse:
      return "worse";
    case Severity::kSevere:
      return "severe";
  }
  return "note";
}

double WeightOf(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return 0;
    case Severity::kWorse:
      return 0.25;
    case Severity::kSevere:
      return 1;
  }
  return 0;
}

std::optional<Trouble> JudgeKernelLine(const KmsgRecord& record) {
  // Any program with the right may write there, and none of them is the kernel.
  if (record.facility != 0) return std::nullopt;
  for (const auto judge : {JudgeXid, JudgeOom, JudgeDisk, JudgeLink, JudgeHardware, JudgeStuck}) {
    auto trouble = judge(record.text);
    if (!trouble) continue;
    if (trouble->device.empty()) trouble->device = record.device;
    return trouble;
  }
  return std::nullopt;
}

}  // namespace muster::agent::health

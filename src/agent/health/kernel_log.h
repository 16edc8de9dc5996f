#pragma once
// The kernel's log as a source of troubles: reads /dev/kmsg, or a file that holds such records a
// line each, judges every record, and tells a trouble that repeats itself once a minute with the
// number of those that it kept back. Never blocks. One thread.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "agent/health/kernel_rules.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace muster::agent::health {

struct ToldTrouble {
  Trouble trouble;
  Instant time{};             ///< of the record, since boot
  std::string line;           ///< as the kernel wrote it
  std::uint64_t repeats = 0;  ///< of the same kind, code and device, not told since the last
};

/// Holds back what repeats itself.
class TroubleGate {
 public:
  static constexpr std::chrono::seconds kQuiet{60};
  static constexpr std::size_t kMostKinds = 256;

  /// Nothing when one like it was told in the last minute, or too many different ones were.
  std::optional<std::uint64_t> Pass(const Trouble& trouble, Instant time);

 private:
  struct Told {
    Instant time{};
    std::uint64_t kept = 0;
  };
  std::map<std::tuple<std::string, std::uint32_t, std::string>, Told> told_;
};

class KernelLog {
 public:
  enum class From { kBoot, kNow };
  static constexpr const char* kDevice = "/dev/kmsg";

  /// Denied where only root may read it (kernel.dmesg_restrict), NotFound in many containers.
  static Result<KernelLog> Open(const std::string& path, From from);

  /// What came since the last call; at most `kMostRecords` records are looked at.
  std::vector<ToldTrouble> Read();
  /// Records that the kernel had overwritten before they were read, or that could not be parsed.
  std::uint64_t missed() const { return missed_; }

 private:
  static constexpr int kMostRecords = 20'000;

  KernelLog(Fd fd, bool lines) : fd_(std::move(fd)), lines_(lines) {}
  std::vector<ToldTrouble> ReadLines();
  void Take(std::string_view record, std::vector<ToldTrouble>& out);

  Fd fd_;
  bool lines_;        ///< a file: records end where a line begins with no blank
  std::string rest_;  ///< of such a file: a record that is not whole yet
  std::uint64_t missed_ = 0;
  TroubleGate gate_;
};

}  // namespace muster::agent::health

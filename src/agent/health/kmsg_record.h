#pragma once
// One record of the kernel's log as /dev/kmsg gives it: "PRIORITY,SEQUENCE,MICROSECONDS,FLAG[,…];
// TEXT", then lines " KEY=VALUE" about the device. Source: Linux,
// Documentation/ABI/testing/dev-kmsg. Pure; any bytes.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::agent::health {

/// What the kernel writes at most in one read.
inline constexpr std::size_t kMostKmsgRecord = 8192;

struct KmsgRecord {
  unsigned level = 6;     ///< 0 emergency … 7 debug
  unsigned facility = 0;  ///< 0: the kernel itself; anything else was written by a program
  std::uint64_t sequence = 0;
  std::chrono::microseconds time{0};  ///< since boot
  bool fragment = false;              ///< the text goes on one that came before
  std::string text;                   ///< with the kernel's \xNN escapes undone
  std::string device;                 ///< of the line " DEVICE=…"; empty: none
};

/// Nothing when it is no record.
std::optional<KmsgRecord> ParseKmsg(std::string_view record);

}  // namespace muster::agent::health

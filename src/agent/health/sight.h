#pragma once
// What the checks see of a machine: its files (/proc, /sys, /dev), limits, clock and file systems,
// each as something that a test can give. Any thread.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/file_system.h"

namespace muster::agent::health {

/// Soft and hard limit; nothing stands for unlimited.
struct Limit {
  std::optional<std::uint64_t> soft;
  std::optional<std::uint64_t> hard;
};

enum class Resource { kFiles, kProcesses, kLockedMemory, kCore };

struct ClockSight {
  bool known = false;                  ///< the kernel told
  bool synchronised = false;           ///< something keeps it right
  std::chrono::microseconds error{0};  ///< estimated
  std::chrono::seconds since_epoch{0};
};

struct Space {
  Bytes size;
  Bytes free;  ///< for us
};

struct Sight {
  FileSystem& files;
  std::function<Limit(Resource)> limit;
  std::function<ClockSight()> clock;
  std::function<std::optional<Space>(const std::string& path)> space;
};

Sight ThisMachine();

/// A small file without the blanks around its text; nothing when it cannot be read.
std::optional<std::string> ReadSmall(FileSystem& files, const std::string& path);
std::optional<std::uint64_t> ReadNumber(FileSystem& files, const std::string& path);

}  // namespace muster::agent::health

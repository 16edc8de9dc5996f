#pragma once
// When the bytes of a log came: `gen-G.stdout.idx` beside `gen-G.stdout.log` holds records of 16
// bytes, time and offset, each a little-endian 64-bit number (docs/formats/run-folder.md). The log
// keeper writes them, who merges or seeks reads them. A reader takes nothing on trust: a torn last
// record is left out, a time or an offset that goes back is raised to the one before. Pure.

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace muster::profile {

/// The bytes from `offset` to that of the next mark came at `t_ns` or soon after: kLogMarkTime and
/// kLogMarkBytes say how soon.
struct LogMark {
  std::int64_t t_ns = 0;  ///< CLOCK_MONOTONIC, as every *_ns of a run folder
  std::uint64_t offset = 0;
  bool operator==(const LogMark&) const = default;
};

/// A new mark is due after either of them.
inline constexpr std::chrono::milliseconds kLogMarkTime{50};
inline constexpr std::uint64_t kLogMarkBytes = 64 << 10;

inline constexpr std::size_t kLogRecordBytes = 16;
std::array<char, kLogRecordBytes> EncodeLogMark(const LogMark& mark);
/// `record` has kLogRecordBytes. Numbers beyond 2^63 − 1 are taken for that.
LogMark DecodeLogMark(std::string_view record);

}  // namespace muster::profile

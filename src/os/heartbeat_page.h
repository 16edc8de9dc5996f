#pragma once
// The bytes of a heartbeat page, version 1, as docs/formats/heartbeat.md lays them out. Included by
// heartbeat.cc and its tests only. Everything that changes is a 64-bit atomic word, little endian,
// so a reader in another process can see an old or a new word but never half of one; what spans
// several words is guarded by a sequence number.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/heartbeat.h"

namespace muster::os {

inline constexpr std::uint64_t kHeartbeatMagic = 0x31'42'48'52'54'53'55'4D;  // "MUSTRHB1"
inline constexpr std::uint32_t kHeartbeatVersion = 1;
inline constexpr std::size_t kHeartbeatRecords = 1024;
inline constexpr std::size_t kRecordWords = sizeof(StepRecord) / 8;

/// The low bits of the phase word hold the phase, the others the time of entering it: 2^60 ns are
/// 36 years of uptime.
inline constexpr unsigned kPhaseBits = 4;

using AtomicWord = std::atomic<std::uint64_t>;
static_assert(AtomicWord::is_always_lock_free && sizeof(AtomicWord) == 8);

struct HeartbeatIdentity {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t rank;
  std::uint32_t records;
  std::uint32_t record_bytes;
};

struct HeartbeatPage {
  HeartbeatIdentity identity;  // written by the agent before anybody else has the page
  std::array<std::byte, 40> reserved;
  AtomicWord generation;
  AtomicWord phase;  // nanoseconds << kPhaseBits | phase
  AtomicWord step;
  AtomicWord durable_step;
  AtomicWord collective;
  AtomicWord sequence;  // of the newest record whose writer got as far as to say so
  std::array<std::byte, 3984> reserved_to_4096;
  std::array<std::array<AtomicWord, kRecordWords>, kHeartbeatRecords> records;
};

static_assert(offsetof(HeartbeatPage, generation) == 64);
static_assert(offsetof(HeartbeatPage, phase) == 72);
static_assert(offsetof(HeartbeatPage, step) == 80);
static_assert(offsetof(HeartbeatPage, durable_step) == 88);
static_assert(offsetof(HeartbeatPage, collective) == 96);
static_assert(offsetof(HeartbeatPage, sequence) == 104);
static_assert(offsetof(HeartbeatPage, records) == 4096);
static_assert(offsetof(StepRecord, sequence) == 0 && offsetof(StepRecord, step) == 8);
static_assert(offsetof(StepRecord, begin_ns) == 16 && offsetof(StepRecord, total_us) == 24);
static_assert(offsetof(StepRecord, generation) == 28 && offsetof(StepRecord, loss) == 32);
static_assert(offsetof(StepRecord, phase_us) == 36);

inline constexpr Bytes kHeartbeatBytes{static_cast<std::int64_t>(sizeof(HeartbeatPage))};
static_assert(kHeartbeatBytes.count == 4096 + 1024 * 64);

}  // namespace muster::os

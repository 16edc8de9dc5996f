#include "os/heartbeat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <optional>

#include "os/heartbeat_page.h"

namespace muster::os {
namespace {

static_assert(std::endian::native == std::endian::little, "the page is little endian");

// A counter this high was never reached by counting: the page is damaged.
constexpr std::uint64_t kSequenceLimit = std::uint64_t{1} << 62;

using RecordWords = std::array<std::uint64_t, kRecordWords>;

const std::array<AtomicWord, kRecordWords>& Slot(const HeartbeatPage& page, std::uint64_t seq) {
  return page.records[(seq - 1) % kHeartbeatRecords];
}

/// The record `seq`, unless it is overwritten or half written.
std::optional<StepRecord> ReadRecord(const HeartbeatPage& page, std::uint64_t seq) {
  const auto& slot = Slot(page, seq);
  RecordWords words;
  words[0] = slot[0].load(std::memory_order_acquire);
  if (words[0] != seq) return std::nullopt;
  // Acquire loads, so that the second look at the sequence cannot move before any of them. They are
  // plain loads on x86, and unlike a fence ThreadSanitizer understands them.
  for (std::size_t i = 1; i < kRecordWords; ++i) words[i] = slot[i].load(std::memory_order_acquire);
  if (slot[0].load(std::memory_order_relaxed) != seq) return std::nullopt;
  return std::bit_cast<StepRecord>(words);
}

/// The newest whole record. A writer may die between a record and the word that announces it.
std::uint64_t LastSequence(const HeartbeatPage& page) {
  const std::uint64_t announced = page.sequence.load(std::memory_order_acquire);
  const std::uint64_t next = announced + 1;
  return Slot(page, next)[0].load(std::memory_order_acquire) == next ? next : announced;
}

Pulse ReadPulse(const HeartbeatPage& page) {
  const std::uint64_t phase = page.phase.load(std::memory_order_acquire);
  const std::uint64_t index = phase & ((1U << kPhaseBits) - 1);
  Pulse pulse;
  pulse.phase = index < kPhaseCount ? static_cast<Phase>(index) : Phase::kDone;
  pulse.phase_since =
      Instant(std::chrono::nanoseconds(static_cast<std::int64_t>(phase >> kPhaseBits)));
  pulse.step = page.step.load(std::memory_order_acquire);
  pulse.durable_step = page.durable_step.load(std::memory_order_acquire);
  pulse.collective = page.collective.load(std::memory_order_acquire);
  return pulse;
}

Status CheckIdentity(const HeartbeatIdentity& identity) {
  if (identity.magic != kHeartbeatMagic) {
    return Error(Code::kInvalid, "the descriptor holds no heartbeat page");
  }
  if (identity.version != kHeartbeatVersion || identity.records != kHeartbeatRecords ||
      identity.record_bytes != sizeof(StepRecord)) {
    return Error(Code::kInvalid,
                 fmt::format("the heartbeat page has version {}, this program knows {}",
                             identity.version, kHeartbeatVersion),
                 "use a program and a muster of the same release");
  }
  return Ok();
}

}  // namespace

std::string_view NameOf(Phase phase) {
  constexpr std::array<std::string_view, kPhaseCount> kNames{
      "init",      "data",       "forward", "backward", "comm",
      "optimizer", "checkpoint", "eval",    "done",     "refused"};
  const auto index = static_cast<std::size_t>(phase);
  MUSTER_CHECK(index < kNames.size());
  return kNames[index];
}

Result<HeartbeatReader> HeartbeatReader::Create(Rank rank) {
  Fd fd = MUSTER_TRY(CreateMemfd("muster-heartbeat", kHeartbeatBytes));
  const HeartbeatIdentity identity{kHeartbeatMagic, kHeartbeatVersion, rank.value(),
                                   kHeartbeatRecords, sizeof(StepRecord)};
  if (::pwrite(fd.get(), &identity, sizeof(identity), 0) != sizeof(identity)) {
    return ErrnoError("initialise a heartbeat page", errno);
  }
  return Adopt(std::move(fd));
}

Result<HeartbeatReader> HeartbeatReader::Adopt(Fd fd) {
  // Read only: whatever goes wrong in the agent, it cannot spoil what a worker reported.
  Mapping mapping = MUSTER_TRY(MapMemfd(fd.get(), kHeartbeatBytes, MapAccess::kRead));
  return HeartbeatReader(std::move(fd), std::move(mapping));
}

const HeartbeatPage& HeartbeatReader::page() const {
  return *reinterpret_cast<const HeartbeatPage*>(mapping_.data());
}

Pulse HeartbeatReader::Read() const {
  // The fields belong together within a generation. A new one is announced once in a long while, so
  // a second look suffices; a hostile writer that flips it all the time only fools itself.
  Pulse pulse;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::uint64_t before = page().generation.load(std::memory_order_acquire);
    pulse = ReadPulse(page());
    pulse.generation = Generation(before);
    if (page().generation.load(std::memory_order_relaxed) == before) break;
  }
  return pulse;
}

std::vector<StepRecord> HeartbeatReader::StepsAfter(std::uint64_t after) const {
  std::vector<StepRecord> steps;
  const std::uint64_t last = LastSequence(page());
  if (last <= after) return steps;
  const std::uint64_t count = std::min<std::uint64_t>(last - after, kHeartbeatRecords);
  steps.reserve(count);
  for (std::uint64_t i = count; i-- > 0;) {
    if (auto record = ReadRecord(page(), last - i)) steps.push_back(*record);
  }
  return steps;
}

Result<HeartbeatWriter> HeartbeatWriter::Open(int fd, Generation generation) {
  if (fd < 0) {
    const HeartbeatReader own = MUSTER_TRY(HeartbeatReader::Create(Rank(0)));
    return Open(own.fd(), generation);
  }
  Mapping mapping = MUSTER_TRY(
      Within("open the heartbeat page", MapMemfd(fd, kHeartbeatBytes, MapAccess::kReadWrite)));
  const auto& page = *reinterpret_cast<const HeartbeatPage*>(mapping.data());
  MUSTER_TRY(CheckIdentity(page.identity));
  if (page.sequence.load(std::memory_order_relaxed) >= kSequenceLimit) {
    return Error(Code::kInvalid, "the heartbeat page is damaged: its sequence is out of range");
  }
  return HeartbeatWriter(std::move(mapping), generation);
}

HeartbeatWriter::HeartbeatWriter(Mapping mapping, Generation generation)
    : mapping_(std::move(mapping)), generation_(static_cast<std::uint32_t>(generation.value())) {
  // A whole record that its writer did not live to announce counts; half a record is overwritten.
  sequence_ = LastSequence(page());
  page().sequence.store(sequence_, std::memory_order_release);
  page().step.store(0, std::memory_order_relaxed);
  page().collective.store(0, std::memory_order_relaxed);
  Enter(Phase::kInit, MonotonicClock::now());
  page().generation.store(generation.value(), std::memory_order_release);
}

HeartbeatPage& HeartbeatWriter::page() const {
  return *reinterpret_cast<HeartbeatPage*>(mapping_.data());
}

void HeartbeatWriter::GoOnAs(Generation generation) {
  generation_ = static_cast<std::uint32_t>(generation.value());
  page().collective.store(0, std::memory_order_relaxed);
  page().generation.store(generation.value(), std::memory_order_release);
}

void HeartbeatWriter::Enter(Phase phase, Instant now) {
  const auto since = static_cast<std::uint64_t>(now.time_since_epoch().count());
  page().phase.store(since << kPhaseBits | static_cast<std::uint64_t>(phase),
                     std::memory_order_release);
}

void HeartbeatWriter::Collective(std::uint64_t sequence) {
  page().collective.store(sequence, std::memory_order_release);
}

void HeartbeatWriter::Durable(std::uint64_t step) {
  page().durable_step.store(step, std::memory_order_release);
}

void HeartbeatWriter::Step(StepRecord record) {
  record.sequence = ++sequence_;
  record.generation = generation_;
  const auto words = std::bit_cast<RecordWords>(record);
  auto& slot = page().records[(sequence_ - 1) % kHeartbeatRecords];
  // 0 marks the slot as half written; the release stores keep it before every word that follows.
  slot[0].store(0, std::memory_order_relaxed);
  for (std::size_t i = 1; i < kRecordWords; ++i) slot[i].store(words[i], std::memory_order_release);
  slot[0].store(sequence_, std::memory_order_release);
  page().sequence.store(sequence_, std::memory_order_release);
  page().step.store(record.step, std::memory_order_release);
}

}  // namespace muster::os

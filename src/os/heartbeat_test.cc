#include "os/heartbeat.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "os/heartbeat_page.h"

namespace muster::os {
namespace {

using std::chrono::nanoseconds;

Instant At(std::int64_t ns) { return Instant(nanoseconds(ns)); }

HeartbeatWriter OpenWriter(const HeartbeatReader& reader, std::uint64_t generation) {
  return *HeartbeatWriter::Open(reader.fd(), Generation(generation));
}

/// A record whose every field follows from its step, so that mixed-up halves show.
StepRecord RecordOf(std::uint64_t step) {
  StepRecord record{.step = step, .begin_ns = static_cast<std::int64_t>(step * 1000)};
  record.total_us = static_cast<std::uint32_t>(step * 7);
  record.loss = static_cast<float>(step % 1024);
  record.phase_us.fill(static_cast<std::uint32_t>(step * 3));
  return record;
}

bool IsWhole(const StepRecord& record) {
  StepRecord expected = RecordOf(record.step);
  expected.sequence = record.sequence;
  expected.generation = record.generation;
  return std::memcmp(&expected, &record, sizeof(record)) == 0;
}

template <typename T>
T ReadAt(int fd, off_t offset) {
  T value{};
  EXPECT_EQ(::pread(fd, &value, sizeof(value), offset), static_cast<ssize_t>(sizeof(value)));
  return value;
}

void WriteAt(int fd, off_t offset, std::uint64_t value, std::size_t size) {
  ASSERT_EQ(::pwrite(fd, &value, size, offset), static_cast<ssize_t>(size));
}

TEST(Heartbeat, ShowsNothingBeforeTheFirstWorker) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(3));
  const Pulse pulse = reader.Read();
  EXPECT_EQ(pulse.generation, Generation(0));
  EXPECT_EQ(pulse.phase, Phase::kInit);
  EXPECT_EQ(pulse.step, 0u);
  EXPECT_TRUE(reader.StepsAfter(0).empty());
}

TEST(Heartbeat, ShowsWhereTheWorkerIs) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(0));
  HeartbeatWriter writer = OpenWriter(reader, 7);
  writer.Enter(Phase::kComm, At(123'456'789'000));
  writer.Collective(41);
  writer.Durable(100);
  writer.Step(RecordOf(105));
  const Pulse pulse = reader.Read();
  EXPECT_EQ(pulse.generation, Generation(7));
  EXPECT_EQ(pulse.phase, Phase::kComm);
  EXPECT_EQ(pulse.phase_since, At(123'456'789'000));
  EXPECT_EQ(pulse.collective, 41u);
  EXPECT_EQ(pulse.durable_step, 100u);
  EXPECT_EQ(pulse.step, 105u);
}

TEST(Heartbeat, KeepsStepsInOrderAndGivesOnlyNewOnes) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(0));
  HeartbeatWriter writer = OpenWriter(reader, 2);
  for (std::uint64_t step = 1; step <= 5; ++step) writer.Step(RecordOf(step));
  const auto steps = reader.StepsAfter(3);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].sequence, 4u);
  EXPECT_EQ(steps[1].step, 5u);
  EXPECT_EQ(steps[1].generation, 2u);
  EXPECT_TRUE(reader.StepsAfter(5).empty());
  EXPECT_TRUE(reader.StepsAfter(~0ull).empty());
}

TEST(Heartbeat, LeavesAGapInTheSequenceWhenTheReaderWasTooSlow) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(0));
  HeartbeatWriter writer = OpenWriter(reader, 1);
  for (std::uint64_t step = 1; step <= 3000; ++step) writer.Step(RecordOf(step));
  const auto steps = reader.StepsAfter(10);
  ASSERT_EQ(steps.size(), kHeartbeatRecords);
  EXPECT_EQ(steps.front().sequence, 3000 - kHeartbeatRecords + 1);
  EXPECT_EQ(steps.back().sequence, 3000u);
  for (const StepRecord& step : steps) EXPECT_TRUE(IsWhole(step));
}

TEST(Heartbeat, ContinuesItsSequenceInTheNextGeneration) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(0));
  {
    HeartbeatWriter first = OpenWriter(reader, 1);
    first.Durable(50);
    first.Collective(9);
    for (std::uint64_t step = 1; step <= 60; ++step) first.Step(RecordOf(step));
  }
  HeartbeatWriter second = OpenWriter(reader, 2);
  EXPECT_EQ(reader.Read().durable_step, 50u);
  EXPECT_EQ(reader.Read().step, 0u);
  EXPECT_EQ(reader.Read().collective, 0u);
  EXPECT_EQ(reader.Read().phase, Phase::kInit);
  second.Step(RecordOf(51));
  const auto steps = reader.StepsAfter(59);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].generation, 1u);
  EXPECT_EQ(steps[1].sequence, 61u);
  EXPECT_EQ(steps[1].generation, 2u);
}

TEST(Heartbeat, KeepsWhatAKilledWriterWroteBeforeItDied) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(0));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto writer = HeartbeatWriter::Open(reader.fd(), Generation(1));
    if (!writer) ::_exit(1);
    for (std::uint64_t step = 1; step <= 300; ++step) writer->Step(RecordOf(step));
    writer->Enter(Phase::kBackward, At(77));
    ::kill(::getpid(), SIGKILL);
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  const auto steps = reader.StepsAfter(0);
  ASSERT_EQ(steps.size(), 300u);
  for (const StepRecord& step : steps) EXPECT_TRUE(IsWhole(step));
  EXPECT_EQ(reader.Read().phase, Phase::kBackward);
  EXPECT_EQ(reader.Read().step, 300u);
}

TEST(Heartbeat, CountsARecordThatItsWriterDidNotLiveToAnnounce) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(0));
  {
    HeartbeatWriter writer = OpenWriter(reader, 1);
    for (std::uint64_t step = 1; step <= 3; ++step) writer.Step(RecordOf(step));
  }
  WriteAt(reader.fd(), offsetof(HeartbeatPage, sequence), 2, 8);
  EXPECT_EQ(reader.StepsAfter(0).size(), 3u);
  HeartbeatWriter next = OpenWriter(reader, 2);
  next.Step(RecordOf(4));
  EXPECT_EQ(reader.StepsAfter(0).back().sequence, 4u);
}

TEST(Heartbeat, SkipsAndLaterOverwritesAHalfWrittenRecord) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(0));
  {
    HeartbeatWriter writer = OpenWriter(reader, 1);
    for (std::uint64_t step = 1; step <= 2; ++step) writer.Step(RecordOf(step));
  }
  // What a kill inside Step leaves in the third slot: sequence 0 and some words.
  WriteAt(reader.fd(), 4096 + 2 * 64 + 8, 3, 8);
  EXPECT_EQ(reader.StepsAfter(0).size(), 2u);
  HeartbeatWriter next = OpenWriter(reader, 2);
  next.Step(RecordOf(3));
  const auto steps = reader.StepsAfter(0);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_TRUE(IsWhole(steps[2]));
}

TEST(Heartbeat, NeverShowsATornRecordToAConcurrentReader) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(0));
  constexpr std::uint64_t kSteps = 200'000;
  std::jthread writing([&] {
    HeartbeatWriter writer = OpenWriter(reader, 1);
    for (std::uint64_t step = 1; step <= kSteps; ++step) writer.Step(RecordOf(step));
  });
  std::uint64_t last = 0;
  while (last < kSteps) {
    for (const StepRecord& step : reader.StepsAfter(last)) {
      ASSERT_TRUE(IsWhole(step)) << step.sequence;
      ASSERT_GT(step.sequence, last);
      last = step.sequence;
    }
  }
}

TEST(Heartbeat, WorksWithoutAnAgent) {
  auto writer = HeartbeatWriter::Open(-1, Generation(1));
  ASSERT_TRUE(writer);
  writer->Enter(Phase::kData, At(5));
  writer->Step(RecordOf(1));
  HeartbeatWriter moved = std::move(*writer);
  moved.Step(RecordOf(2));
}

// The layout of docs/formats/heartbeat.md, read back byte by byte without our structs.
TEST(Heartbeat, HasTheDocumentedLayout) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(5));
  HeartbeatWriter writer = OpenWriter(reader, 0x1'0000'0009);
  writer.Enter(Phase::kEval, At(1000));
  writer.Durable(11);
  writer.Collective(12);
  StepRecord record{.step = 13, .begin_ns = -14};
  record.total_us = 15;
  record.loss = 2.5F;
  record.phase_us = {21, 22, 23, 24, 25, 26, 27};
  writer.Step(record);
  const int fd = reader.fd();
  EXPECT_EQ(std::string(ReadAt<std::array<char, 8>>(fd, 0).data(), 8), "MUSTRHB1");
  EXPECT_EQ(ReadAt<std::uint32_t>(fd, 8), 1u);
  EXPECT_EQ(ReadAt<std::uint32_t>(fd, 12), 5u);
  EXPECT_EQ(ReadAt<std::uint32_t>(fd, 16), 1024u);
  EXPECT_EQ(ReadAt<std::uint32_t>(fd, 20), 64u);
  EXPECT_EQ(ReadAt<std::uint64_t>(fd, 64), 0x1'0000'0009u);
  EXPECT_EQ(ReadAt<std::uint64_t>(fd, 72), 1000u * 16 + 7);
  EXPECT_EQ(ReadAt<std::uint64_t>(fd, 80), 13u);
  EXPECT_EQ(ReadAt<std::uint64_t>(fd, 88), 11u);
  EXPECT_EQ(ReadAt<std::uint64_t>(fd, 96), 12u);
  EXPECT_EQ(ReadAt<std::uint64_t>(fd, 104), 1u);
  EXPECT_EQ(ReadAt<std::uint64_t>(fd, 4096), 1u);
  EXPECT_EQ(ReadAt<std::uint64_t>(fd, 4104), 13u);
  EXPECT_EQ(ReadAt<std::int64_t>(fd, 4112), -14);
  EXPECT_EQ(ReadAt<std::uint32_t>(fd, 4120), 15u);
  EXPECT_EQ(ReadAt<std::uint32_t>(fd, 4124), 9u);
  EXPECT_EQ(ReadAt<float>(fd, 4128), 2.5F);
  for (std::uint32_t i = 0; i < 7; ++i) EXPECT_EQ(ReadAt<std::uint32_t>(fd, 4132 + 4 * i), 21 + i);
}

void ExpectRefused(int fd) {
  const auto writer = HeartbeatWriter::Open(fd, Generation(1));
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code(), Code::kInvalid) << writer.error().ToString();
}

TEST(Heartbeat, RefusesForeignPages) {
  const Fd empty = *CreateMemfd("test", kHeartbeatBytes);
  ExpectRefused(empty.get());
  const Fd short_one = *CreateMemfd("test", Bytes{4096});
  ExpectRefused(short_one.get());
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ExpectRefused(null.get());
}

TEST(Heartbeat, RefusesAnotherVersionAndDamage) {
  const HeartbeatReader future = *HeartbeatReader::Create(Rank(0));
  WriteAt(future.fd(), 8, 2, 4);
  ExpectRefused(future.fd());
  const HeartbeatReader damaged = *HeartbeatReader::Create(Rank(0));
  WriteAt(damaged.fd(), 104, ~0ull, 8);
  ExpectRefused(damaged.fd());
}

TEST(Heartbeat, SurvivesAPageFullOfNonsense) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(0));
  const std::string noise(kHeartbeatBytes.count - 64, '\xff');
  ASSERT_EQ(::pwrite(reader.fd(), noise.data(), noise.size(), 64),
            static_cast<ssize_t>(noise.size()));
  const Pulse pulse = reader.Read();
  EXPECT_LT(static_cast<std::size_t>(pulse.phase), kPhaseCount);
  EXPECT_LE(reader.StepsAfter(0).size(), kHeartbeatRecords);
}

TEST(Heartbeat, RemembersAcrossGenerationsThatAStepWasDone) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(0));
  EXPECT_FALSE(OpenWriter(reader, 1).HasStepped());
  HeartbeatWriter second = OpenWriter(reader, 2);
  EXPECT_FALSE(second.HasStepped()) << "the first one did none";
  second.Step(RecordOf(1));
  EXPECT_TRUE(second.HasStepped());
  EXPECT_TRUE(OpenWriter(reader, 3).HasStepped());
}

TEST(Heartbeat, AnUnknownPhaseIsNoRefusal) {
  const HeartbeatReader reader = *HeartbeatReader::Create(Rank(0));
  HeartbeatWriter writer = OpenWriter(reader, 1);
  writer.Enter(Phase::kRefused, At(1));
  EXPECT_EQ(reader.Read().phase, Phase::kRefused);
  writer.Enter(static_cast<Phase>(15), At(2));
  EXPECT_EQ(reader.Read().phase, Phase::kDone);
}

TEST(Phase, HasANameEach) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kPhaseCount; ++i) names.insert(NameOf(static_cast<Phase>(i)));
  EXPECT_EQ(names.size(), kPhaseCount);
  EXPECT_EQ(NameOf(Phase::kOptimizer), "optimizer");
}

}  // namespace
}  // namespace muster::os

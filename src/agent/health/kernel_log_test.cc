#include "agent/health/kernel_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "agent/health/kernel_log_check.h"
#include "agent/health/node_score.h"

namespace muster::agent::health {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Severity = Trouble::Severity;

/// A file that is gone at the end.
class TempFile {
 public:
  TempFile() {
    char path[] = "kmsg-XXXXXX";
    const int fd = ::mkstemp(path);
    EXPECT_GE(fd, 0);
    ::close(fd);
    path_ = path;
  }
  ~TempFile() { std::remove(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Trouble JudgeText(const std::string& text) {
  KmsgRecord record;
  record.text = text;
  return JudgeKernelLine(record).value_or(Trouble{});
}

TEST(ParseKmsg, ReadsARecordWithItsDevice) {
  const auto record = ParseKmsg(
      "3,1234,98765432,-,caller=T71;usb 1-1: \\x41b\\\n SUBSYSTEM=usb\n DEVICE=+usb:1-1\n");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->level, 3U);
  EXPECT_EQ(record->facility, 0U);
  EXPECT_EQ(record->sequence, 1234U);
  EXPECT_EQ(record->time, microseconds(98765432));
  EXPECT_FALSE(record->fragment);
  EXPECT_EQ(record->text, "usb 1-1: Ab\\");
  EXPECT_EQ(record->device, "+usb:1-1");
}

TEST(ParseKmsg, TellsWhoWroteAndWhatGoesOn) {
  const auto record = ParseKmsg("30,1,2,c;systemd says hello");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->facility, 3U);
  EXPECT_EQ(record->level, 6U);
  EXPECT_TRUE(record->fragment);
}

TEST(ParseKmsg, RefusesEverythingElse) {
  for (const char* text :
       {"", ";", "6,1,2;text", "6,1,2,;text", "x,1,2,-;text", "6,1,2,-", "6,,2,-;t", "-6,1,2,-;t",
        "99999999,1,2,-;t", "6,1,99999999999999999999,-;t", "6,1,18446744073709551615,-;t"}) {
    EXPECT_FALSE(ParseKmsg(text)) << text;
  }
  EXPECT_FALSE(ParseKmsg("6,1,2,-;" + std::string(kMostKmsgRecord, 'x')));
}

TEST(JudgeKernelLine, ReadsNvidiasErrors) {
  const Trouble lost = JudgeText(
      "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.");
  EXPECT_EQ(lost.kind, "xid");
  EXPECT_EQ(lost.code, 79U);
  EXPECT_EQ(lost.device, "PCI:0000:3b:00");
  EXPECT_EQ(lost.pid, 1234);
  EXPECT_EQ(lost.severity, Severity::kSevere);
  EXPECT_EQ(JudgeText("NVRM: Xid (PCI:0000:3b:00): 31, pid='<unknown>', MMU Fault").severity,
            Severity::kNote);
  EXPECT_FALSE(JudgeText("NVRM: Xid (PCI:0000:3b:00): 31, pid='<unknown>', MMU").pid);
  const Trouble unknown = JudgeText("NVRM: Xid (PCI:0000:3b:00): 9999, who knows");
  EXPECT_EQ(unknown.code, 9999U);
  EXPECT_EQ(unknown.severity, Severity::kWorse);
  EXPECT_EQ(JudgeText("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32").kind,
            "sxid");
}

TEST(JudgeKernelLine, ReadsWhatHappensToMemoryDisksAndLinks) {
  const struct {
    const char* text;
    const char* kind;
    const char* device;
    std::optional<std::int64_t> pid;
    Severity severity;
  } cases[] = {
      {"Out of memory: Killed process 71 (python) total-vm:1kB", "oom", "", 71, Severity::kNote},
      {"Memory cgroup out of memory: Killed process 72 (a b), UID 0", "oom", "", 72,
       Severity::kNote},
      {"blk_update_request: I/O error, dev sdb, sector 8", "io_error", "sdb", {}, Severity::kWorse},
      {"Buffer I/O error on dev nvme0n1p2, logical block 0",
       "io_error",
       "nvme0n1p2",
       {},
       Severity::kWorse},
      {"EXT4-fs error (device sda1): ext4_find_entry:1", "fs_error", "sda1", {}, Severity::kSevere},
      {"EXT4-fs (sda1): Remounting filesystem read-only",
       "fs_error",
       "sda1",
       {},
       Severity::kSevere},
      {"igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Down",
       "link_down",
       "eth0",
       {},
       Severity::kWorse},
      {"mlx5_core 0000:3b:00.0 ib0: Link down", "link_down", "ib0", {}, Severity::kWorse},
      {"mce: [Hardware Error]: Machine check events logged",
       "machine_check",
       "",
       {},
       Severity::kWorse},
      {"EDAC MC0: 1 UE memory read error on CPU_SrcID",
       "memory_error",
       "MC0",
       {},
       Severity::kSevere},
      {"INFO: task python:4711 blocked for more than 120 seconds.", "hung_task", "", 4711,
       Severity::kWorse},
      {"watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:1]",
       "lockup",
       "3",
       {},
       Severity::kSevere},
      {"CPU7: Core temperature above threshold, cpu clock throttled",
       "throttled",
       "CPU7",
       {},
       Severity::kWorse},
  };
  for (const auto& expected : cases) {
    const Trouble trouble = JudgeText(expected.text);
    EXPECT_EQ(trouble.kind, expected.kind) << expected.text;
    EXPECT_EQ(trouble.device, expected.device) << expected.text;
    EXPECT_EQ(trouble.pid, expected.pid) << expected.text;
    EXPECT_EQ(trouble.severity, expected.severity) << expected.text;
    EXPECT_FALSE(trouble.meaning.empty());
  }
}

TEST(JudgeKernelLine, SaysNothingOfOtherLinesAndOfWhatProgramsWrote) {
  for (const char* text : {"", "b2b35: port 2(b2v35x2) entered forwarding state",
                           "EXT4-fs (sda1): mounted filesystem", "python[71]: out of memory"}) {
    EXPECT_TRUE(JudgeText(text).kind.empty()) << text;
  }
  KmsgRecord record;
  record.facility = 1;
  record.text = "NVRM: Xid (PCI:0000:3b:00): 79, forged";
  EXPECT_FALSE(JudgeKernelLine(record));
}

TEST(KernelLog, ReadsWhatComesAndTellsARepetitionOnceAMinute) {
  TempFile file;
  file.Append("4,1,1000000,-;NVRM: Xid (PCI:0000:3b:00): 48, before we looked\n");
  auto log = KernelLog::Open(file.path(), KernelLog::From::kNow);
  ASSERT_TRUE(log);
  EXPECT_TRUE(log->Read().empty());
  file.Append("4,2,2000000,-;NVRM: Xid (PCI:0000:3b:00): 79, one\n SUBSYSTEM=pci\n");
  file.Append("4,3,3000000,-;NVRM: Xid (PCI:0000:3b:00): 79, two\n");
  file.Append("4,4,4000000,-;NVRM: Xid (PCI:0000:5e:00): 79, another GPU\n4,5,5000000,-;half");
  auto told = log->Read();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].line, "NVRM: Xid (PCI:0000:3b:00): 79, one");
  EXPECT_EQ(told[0].time, Instant(seconds(2)));
  EXPECT_EQ(told[1].trouble.device, "PCI:0000:5e:00");
  file.Append(" a line\nno record\n4,6,63000000,-;NVRM: Xid (PCI:0000:3b:00): 79, again\n");
  told = log->Read();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].repeats, 1U);
  EXPECT_EQ(log->missed(), 1U);  // "no record"
}

TEST(KernelLog, ReadsFromTheBeginningToo) {
  TempFile file;
  file.Append("4,1,1000000,-;NVRM: Xid (PCI:0000:3b:00): 48, x\n");
  auto log = KernelLog::Open(file.path(), KernelLog::From::kBoot);
  ASSERT_TRUE(log);
  EXPECT_EQ(log->Read().size(), 1U);
  EXPECT_FALSE(KernelLog::Open("no/such/file", KernelLog::From::kNow));
}

TEST(TroubleGate, DoesNotGrowForever) {
  TroubleGate gate;
  std::size_t told = 0;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    Trouble trouble;
    trouble.kind = "xid";
    trouble.code = i;
    if (gate.Pass(trouble, Instant(seconds(i)))) ++told;
  }
  EXPECT_EQ(told, TroubleGate::kMostKinds);
}

TEST(NodeScore, HalvesEverySixHours) {
  NodeScore score;
  const Instant start{hours(100)};
  EXPECT_EQ(score.At(start), 0);
  score.Add(1, start);
  EXPECT_TRUE(score.Unwell(start));
  EXPECT_DOUBLE_EQ(score.At(start + hours(6)), 0.5);
  EXPECT_TRUE(score.Unwell(start + hours(5)));  // no flicker
  EXPECT_FALSE(score.Unwell(start + hours(7)));
  EXPECT_FALSE(score.Unwell(start + hours(6)));  // and none on the way back
}

TEST(NodeScore, TakesFourTroublesOfWearForASevereOne) {
  NodeScore score;
  const Instant now{hours(1)};
  for (int i = 0; i < 3; ++i) score.Add(WeightOf(Severity::kWorse), now);
  EXPECT_FALSE(score.Unwell(now));
  score.Add(WeightOf(Severity::kWorse), now);
  EXPECT_TRUE(score.Unwell(now));
}

TEST(NodeScore, IsNotCarriedAwayByAFloodOrATimeThatGoesBack) {
  NodeScore score;
  for (int i = 0; i < 100'000; ++i) score.Add(1, Instant(hours(1)));
  EXPECT_LE(score.At(Instant(hours(1))), NodeScore::kMost);
  score.Add(1, Instant(hours(0)));
  EXPECT_LE(score.At(Instant(hours(0))), NodeScore::kMost);
}

TEST(JudgeKernelLog, NamesTheWorstAndWarns) {
  EXPECT_EQ(JudgeKernelLog({}, 0, Instant(hours(1))).verdict, Check::Verdict::kOk);
  ToldTrouble told;
  told.trouble = JudgeText("NVRM: Xid (PCI:0000:3b:00): 79, pid=7, x");
  told.time = Instant(hours(1));
  const Check now = JudgeKernelLog({&told, 1}, 0, Instant(hours(1)));
  EXPECT_EQ(now.verdict, Check::Verdict::kWarn);
  EXPECT_THAT(now.measured,
              HasSubstr("xid 79 on PCI:0000:3b:00: the GPU has left the bus (pid 7)"));
  // Two days later it is history, and still told.
  const Check later = JudgeKernelLog({&told, 1}, 0, Instant(hours(49)));
  EXPECT_EQ(later.verdict, Check::Verdict::kOk);
  EXPECT_THAT(later.measured, HasSubstr("score 0.00"));
}

}  // namespace
}  // namespace muster::agent::health

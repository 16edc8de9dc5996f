#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "profile/live/live_text.h"
#include "profile/live/newest_run.h"
#include "profile/report/fake_run.h"
#include "profile/report/scratch.h"

namespace muster::profile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using State = RankLive::State;

void Append(const Scratch& scratch, const std::string& file, std::string_view text) {
  std::ofstream(scratch.path() + "/" + file, std::ios::app) << text;
}

/// A run that is being written: the parts of a fake one, line by line.
class Growing {
 public:
  explicit Growing(std::uint32_t ranks) : files_(*RunFiles::Open(scratch_.path())) {
    std::filesystem::create_directories(scratch_.path() + "/steps");
    Append(scratch_, "run.json",
           fmt::format(R"({{"format":"muster-run/1","id":"7f3a","name":"vit","host":"h",)"
                       R"("created_ns":1000000000,"ranks":{}}})",
                       ranks));
  }
  void Event(std::string_view fields) {
    Append(scratch_, "events.jsonl",
           fmt::format("{{\"t_ns\":{},{}}}\n", now_ += 1'000'000, fields));
  }
  void Step(std::uint32_t rank, std::uint64_t step, std::uint64_t generation = 1,
            std::uint32_t total_us = 1000) {
    Append(scratch_, fmt::format("steps/rank-{}.jsonl", rank),
           fmt::format(
               R"({{"step":{},"gen":{},"begin_ns":{},"total_us":{},"loss":0.5,"phase_us":{{}}}})"
               "\n",
               step, generation, now_ += 1'000'000, total_us));
  }
  LiveRun Open() const { return *LiveRun::Open(files_); }
  const Scratch& scratch() const { return scratch_; }

 private:
  Scratch scratch_;
  RunFiles files_;
  std::int64_t now_ = 1'000'000'000;
};

std::vector<std::string> TextsOf(const std::vector<Happening>& happenings) {
  std::vector<std::string> texts;
  for (const Happening& happening : happenings) texts.push_back(happening.text);
  return texts;
}

TEST(LineTail, GivesWholeLinesOnce) {
  const Scratch scratch;
  const auto files = *RunFiles::Open(scratch.path());
  LineTail tail("a", 1_MiB);
  std::vector<std::string> lines;
  const auto poll = [&] {
    lines.clear();
    tail.Poll(files, [&](std::string_view line) { lines.emplace_back(line); });
    return lines;
  };
  EXPECT_THAT(poll(), IsEmpty());
  Append(scratch, "a", "one\ntw");
  EXPECT_THAT(poll(), ElementsAre("one"));
  EXPECT_THAT(poll(), IsEmpty());
  Append(scratch, "a", "o\n" + std::string(kMaxLineBytes + 1, 'x'));
  EXPECT_THAT(poll(), ElementsAre("two"));
  Append(scratch, "a", "x\nthree\n");
  EXPECT_THAT(poll(), ElementsAre("three"));
}

TEST(LineTail, ReadsOnlyTheEndOfWhatCameFast) {
  const Scratch scratch;
  const auto files = *RunFiles::Open(scratch.path());
  LineTail tail("a", Bytes{20});
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line) { lines.emplace_back(line); };
  for (int i = 0; i < 100; ++i) Append(scratch, "a", fmt::format("line {}\n", i));
  tail.Poll(files, keep);
  EXPECT_THAT(lines, ElementsAre("line 98", "line 99"));
  Append(scratch, "a", "next\n");
  tail.Poll(files, keep);
  EXPECT_EQ(lines.back(), "next");
}

TEST(LiveRun, KnowsHowAFinishedRunStood) {
  const Scratch scratch;
  WriteFakeRun(scratch.path());
  const auto files = *RunFiles::Open(scratch.path());
  LiveRun run = *LiveRun::Open(files);
  EXPECT_THAT(TextsOf(run.Poll()), ElementsAre("rank 1 killed by SIGKILL at step 342",
                                               "generation 2 started, from step 300",
                                               "every rank steps again, in generation 2",
                                               "the run ended: SUCCEEDED, exit code 0"));
  EXPECT_EQ(run.state(), LiveRun::State::kSucceeded);
  EXPECT_EQ(run.generation(), 2U);
  EXPECT_EQ(run.checkpoint(), 600U);
  for (const RankLive& rank : run.ranks()) {
    EXPECT_EQ(rank.state, State::kFinished);
    EXPECT_EQ(rank.step, 600U);
    EXPECT_EQ(rank.times_us.size(), 20U);
  }
  EXPECT_THAT(run.Poll(), IsEmpty());
}

TEST(LiveRun, FollowsARecoveryInPlace) {
  Growing growing(2);
  LiveRun run = growing.Open();
  run.Poll();
  EXPECT_EQ(run.ranks()[0].state, State::kWaiting);
  growing.Event(R"("event":"generation_started","gen":1)");
  growing.Event(R"("event":"worker_started","gen":1,"rank":0,"pid":1,"how":"fork")");
  growing.Event(R"("event":"worker_started","gen":1,"rank":1,"pid":2,"how":"fork")");
  run.Poll();
  EXPECT_EQ(run.ranks()[1].state, State::kStarted);
  growing.Step(0, 1);
  growing.Step(1, 1);
  growing.Step(0, 2, 1, 3000);
  run.Poll();
  EXPECT_EQ(run.ranks()[0].state, State::kRunning);
  EXPECT_EQ(RankLine(run, 0), "rank 0 step 2, 3 ms a step, loss 0.5, generation 1");
  growing.Event(
      R"("event":"worker_exited","gen":1,"rank":1,"pid":2,"signal":"SIGKILL","cause":"fault")");
  growing.Event(R"("event":"fault","gen":1,"rank":1,"cause":"killed by SIGKILL","step":1)");
  growing.Event(R"("event":"pause","gen":1)");
  growing.Step(1, 1);  // was on its way
  run.Poll();
  EXPECT_EQ(run.ranks()[0].state, State::kPaused);
  EXPECT_EQ(RankLine(run, 1).substr(0, 23), "rank 1 failed (SIGKILL)");
  growing.Event(R"("event":"generation_started","gen":2,"resume_step":2)");
  growing.Event(R"("event":"worker_started","gen":2,"rank":1,"pid":3,"how":"fork")");
  growing.Step(0, 3, 2);
  run.Poll();
  EXPECT_EQ(run.ranks()[0].state, State::kRunning);
  EXPECT_EQ(run.ranks()[0].generation, 2U);
  EXPECT_EQ(run.ranks()[1].state, State::kStarted);
  growing.Event(R"("event":"node_lost","gen":2,"node":"n2","reason":"silent")");
  growing.Event(R"("event":"shim_lost","gen":2,"node":"n1","reason":"killed by SIGKILL")");
  growing.Event(R"("event":"hang","gen":2,"rank":0,"step":3,"what":"stopped")");
  EXPECT_THAT(TextsOf(run.Poll()), ElementsAre("node n2 is lost: silent",
                                               "the shim of node n1 is lost: killed by SIGKILL",
                                               "rank 0 hangs at step 3: stopped"));
  EXPECT_EQ(run.ranks()[0].state, State::kHanging);
}

TEST(LiveRun, TakesWhatIsTornAndNonsense) {
  Growing growing(1);
  Append(growing.scratch(), "events.jsonl", "nonsense\n[]\n{\"t_ns\":1}\n");
  growing.Event(R"("event":"worker_started","gen":1,"rank":4000,"pid":1)");
  growing.Event(R"("event":"hang","gen":1,"rank":0,"step":7,"what":"\u001b[2Jowned\nfaked")");
  Append(growing.scratch(), "steps/rank-0.jsonl", "{\"step\":-1}\n{\"step\":3,\"gen\":1,\"beg");
  LiveRun run = growing.Open();
  const auto happened = run.Poll();
  ASSERT_EQ(happened.size(), 1U);
  EXPECT_EQ(HappeningLine(run, happened[0]), "2.00 ms: rank 0 hangs at step 7: owned faked");
  EXPECT_EQ(run.ranks()[0].state, State::kHanging);
  EXPECT_EQ(run.state(), LiveRun::State::kLost);
}

TEST(TopLines, AreWithinTheTerminal) {
  Growing growing(64);
  growing.Event(R"("event":"generation_started","gen":1)");
  for (std::uint32_t rank = 0; rank < 64; ++rank) growing.Step(rank, rank == 40 ? 5 : 12);
  growing.Event(R"("event":"hang","gen":1,"rank":7,"step":7,"what":"stopped")");
  growing.Event(R"("event":"fault","gen":1,"rank":7,"cause":"killed by SIGKILL","step":12)");
  LiveRun run = growing.Open();
  const auto news = run.Poll();
  const std::deque<Happening> happened(news.begin(), news.end());
  for (const std::size_t columns : {1U, 20U, 80U, 200U, 500U}) {
    for (const std::size_t rows : {1U, 4U, 8U, 24U, 80U}) {
      const auto lines = TopLines(run, happened, {.columns = columns, .rows = rows});
      EXPECT_LE(lines.size(), rows);
      for (const std::string& line : lines) EXPECT_LE(line.size(), columns);
    }
  }
  const auto small = TopLines(run, happened, {.columns = 90, .rows = 12});
  EXPECT_THAT(small[4], HasSubstr("7 hanging"));
  EXPECT_THAT(small, testing::Contains(HasSubstr("   40 running          5      1 ms     7")));
  EXPECT_THAT(small, testing::Contains(HasSubstr("more")));
  EXPECT_THAT(small, testing::Contains(HasSubstr("rank 7 killed by SIGKILL at step 12")));
  const auto all = TopLines(run, happened, {});
  EXPECT_EQ(all.size(), 3U + 1 + 64 + 1 + 2);
  EXPECT_THAT(TopJson(run, happened), HasSubstr(R"("lag":7)"));
}

TEST(NewestRun, IsTheOneBegunLast) {
  const Scratch scratch;
  EXPECT_EQ(NewestRun(scratch.path()).error().code(), Code::kNotFound);
  EXPECT_EQ(NewestRun(scratch.path() + "/none").error().code(), Code::kNotFound);
  for (const char* name : {"b", "a", "c"}) {
    std::filesystem::create_directories(scratch.path() + "/" + name);
    if (*name != 'c') std::ofstream(scratch.path() + "/" + name + "/run.json") << "{}";
  }
  const auto now = std::filesystem::last_write_time(scratch.path() + "/b/run.json");
  std::filesystem::last_write_time(scratch.path() + "/a/run.json", now + std::chrono::seconds(5));
  EXPECT_EQ(*NewestRun(scratch.path()), scratch.path() + "/a");
}

}  // namespace
}  // namespace muster::profile

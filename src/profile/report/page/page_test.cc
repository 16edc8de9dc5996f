#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <regex>
#include <tuple>
#include <vector>

#include "profile/report/fake_run.h"
#include "profile/report/page/report_page.h"
#include "profile/report/scratch.h"
#include "profile/report/step_series.h"

namespace muster::profile {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string PageOf(const Scratch& scratch) {
  const auto files = RunFiles::Open(scratch.path());
  auto run = ReadRun(*files);
  EXPECT_TRUE(run.has_value());
  return ReportPage(BuildReport(std::move(*run)));
}

std::string PageOf(const FakeRunOptions& options) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), options);
  return PageOf(scratch);
}

/// Reads the page as strictly as XML: every tag closed in order, every attribute quoted. Says what
/// is wrong, or nothing. tests/e2e/test_report.py has a second reader.
std::string WhatIsMalformed(const std::string& page) {
  static const std::regex kTag(
      R"(^<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z-]+(?:="[^"<>]*")?)*)\s*(/?)>)");
  const std::vector<std::string> kVoid{"meta", "path", "br"};
  std::vector<std::string> open;
  std::size_t at = page.find('\n');
  while ((at = page.find('<', at)) != std::string::npos) {
    if (page.compare(at, 7, "<style>") == 0) at = page.find("</style>", at) + 8;
    const auto end = page.find('>', at);
    std::smatch match;
    const std::string tag = page.substr(page.find('<', at), end - at + 1);
    if (tag.empty() || tag[0] != '<') continue;
    if (!std::regex_search(tag, match, kTag)) return "odd tag: " + tag.substr(0, 200);
    if (match[1].length() != 0) {
      if (open.empty() || open.back() != match[2]) return "closes too early: " + tag;
      open.pop_back();
    } else if (match[4].length() == 0 && match[2] != "meta") {
      open.push_back(match[2]);
    }
    at = end;
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

TEST(ReportPage, IsWellFormed) {
  EXPECT_EQ(WhatIsMalformed(PageOf(FakeRunOptions{})), "");
  EXPECT_EQ(
      WhatIsMalformed(PageOf({.recovers = false, .fault_log = "<script>alert(1)</script>\n"})), "");
}

TEST(ReportPage, LoadsNothingAndForbidsIt) {
  const std::string page = PageOf(FakeRunOptions{});
  EXPECT_THAT(page,
              HasSubstr("content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
                        "form-action 'none'\""));
  for (const char* word :
       {"http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link", "<iframe"}) {
    EXPECT_THAT(page, Not(HasSubstr(word)));
  }
}

TEST(ReportPage, EscapesWhateverTheRunFolderSays) {
  using std::string_literals::operator""s;  // keeps the NUL
  constexpr const char* kHostile = R"(<img src=x onerror=alert(1)>\" '</title><script>)";
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.name = kHostile,
                                .steps = 30,
                                .fault_step = 20,
                                .recovers = false,
                                .fault_log = "\x1b[31m</pre><script>alert(2)</script>\xFF\0x"s,
                                .reason = kHostile});
  std::ofstream(scratch.path() + "/job.yaml") << "</pre><style>*{display:none}</style>\x1b[2J\n";
  std::ofstream(scratch.path() + "/events.jsonl", std::ios::app)
      << R"({"t_ns":5000000000000,"event":"run_started","command":["<b>","\"onmouseover=x"]})"
      << "\n";
  const std::string page = PageOf(scratch);
  EXPECT_EQ(WhatIsMalformed(page), "");
  for (const char* word :
       {"<script", "<img", "onerror=alert(1)>\"", "\x1b", "<b>\"", "{display:none}</style>"}) {
    EXPECT_THAT(page, Not(HasSubstr(word)));
  }
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(2)&lt;/script&gt;"));
}

TEST(ReportPage, ShowsFaultRecoveryAndReplay) {
  const std::string page = PageOf(FakeRunOptions{});
  EXPECT_THAT(page, HasSubstr("one fault survived, 2."));
  EXPECT_THAT(page, HasSubstr("steps 301–341 were run again by generation 2"));
  EXPECT_THAT(page, HasSubstr("every rank runs again, 224 ms later"));
  EXPECT_THAT(page, HasSubstr("checkpoint of step 300"));
  EXPECT_THAT(page, HasSubstr("ranksPerNode: 2"));
}

TEST(ReportPage, SaysWhyARankThatWasKeptIsDrawnWithItsOldGeneration) {
  RunReport report{.facts = {.ranks = 2}, .wall = 10};
  report.generations = {{.generation = 1, .begin = 0}, {.generation = 2, .begin = 5}};
  report.workers = {{.rank = 0, .generation = 1, .begin = 0, .end = 4.9},
                    {.rank = 1, .generation = 1, .begin = 0, .end = 4.9},
                    {.rank = 0, .generation = 2, .begin = 5, .end = 10},
                    {.rank = 1, .generation = 2, .begin = 5, .end = 10}};
  EXPECT_THAT(ReportPage(report), Not(HasSubstr("A rank that is kept")));
  report.workers.pop_back();
  report.workers[1].end = 10;
  EXPECT_THAT(ReportPage(report), HasSubstr("A rank that is kept"));
}

TEST(ReportPage, StaysSmallForAHundredThousandSteps) {
  const std::string page = PageOf(
      {.ranks = 1, .steps = 100'000, .fault_step = 71'234, .fault_rank = 0, .eval_every = 1000});
  EXPECT_LT(page.size(), 1'000'000U);
}

TEST(ReportPage, StaysSmallForAHundredThousandEvaluations) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.ranks = 1, .steps = 50, .fault_step = 0, .eval_every = 0});
  std::ofstream evals(scratch.path() + "/eval.jsonl");
  for (int step = 1; step <= 100'000; ++step) {
    evals << fmt::format(R"({{"step":{},"gen":1,"accuracy":0.5,"loss":1,"samples":9}})", step)
          << "\n";
  }
  evals.close();
  const std::string page = PageOf(scratch);
  EXPECT_LT(page.size(), 300'000U);
  EXPECT_THAT(page, HasSubstr("step 100000: 50.00 %"));
}

TEST(ReportPage, ShowsAnEvaluationThatAReplayDidAgainOnceAndOnItsAxis) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.ranks = 1, .steps = 50, .fault_step = 0, .eval_every = 0});
  std::ofstream evals(scratch.path() + "/eval.jsonl");
  for (const auto& [step, generation, accuracy] :
       {std::tuple(100, 1, 0.5), std::tuple(200, 1, 0.6), std::tuple(300, 1, 0.7),
        std::tuple(200, 2, 0.8)}) {  // ended while it replayed
    evals << fmt::format(R"({{"step":{},"gen":{},"accuracy":{},"samples":9}})", step, generation,
                         accuracy)
          << "\n";
  }
  evals.close();
  const std::string page = PageOf(scratch);
  EXPECT_THAT(page, HasSubstr("step 200: 80.00 %"));
  EXPECT_THAT(page, Not(HasSubstr("step 200: 60.00 %")));
  EXPECT_THAT(page, Not(HasSubstr("60.00 %</td>")));
  EXPECT_THAT(page, HasSubstr("left:100%"));  // step 300 ends the axis
}

std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ReportPage, ShowsEveryRankThatDiedInOneFault) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.ranks = 12});
  const auto files = RunFiles::Open(scratch.path());
  RunReport report = BuildReport(*ReadRun(*files));
  ASSERT_EQ(report.faults.size(), 1U);
  report.faults[0].others = {10, 5, 11};
  const std::string page = ReportPage(report);
  EXPECT_THAT(page, HasSubstr("data-name=\"Rank\">1, 5, 10, 11</td>"));
  EXPECT_THAT(page, HasSubstr("Up close: ranks 1, 5, 10, 11 die at step 342"));
  for (const char* rank : {"rank 1 died (", "rank 5 died too (", "rank 11 died too ("}) {
    // On its lane of the whole run and up close.
    EXPECT_EQ(CountOf(page, std::string("title=\"") + rank), 2U) << rank;
  }
  EXPECT_EQ(WhatIsMalformed(page), "");
  report.faults[0].others = {};
  EXPECT_THAT(ReportPage(report), HasSubstr("Up close: rank 1 dies at step 342"));
  report.faults[0].others = {4'000'000'000};
  EXPECT_EQ(WhatIsMalformed(ReportPage(report)), "");
}

TEST(ReportPage, GivesALabelOnABarTwoFormsAndACellItsColumnForNarrowScreens) {
  const std::string page = PageOf(FakeRunOptions{});
  EXPECT_THAT(page, HasSubstr("<b>generation 1</b><i>g1</i>"));
  for (const char* name : {"At", "Rank", "Generation", "Step", "Cause", "Lost", "Replay"})
    EXPECT_THAT(page, HasSubstr(fmt::format("data-name=\"{}\"", name)));
}

TEST(ReportPage, StaysSmallWhateverAHostileFolderFillsItWith) {
  const std::string quotes(kMaxText, '"');
  RunReport report;
  std::vector<std::uint32_t> others(65536);
  std::iota(others.begin(), others.end(), 0U);
  report.facts = {.id = quotes, .name = quotes, .version = quotes, .host = quotes};
  report.facts.ranks = 64;
  report.reason = report.command = report.ended_utc = report.facts.created_utc = quotes;
  report.state = RunState::kFailed;
  report.wall = 100;
  report.steps = 1000;
  report.job_yaml = std::string(1 << 20, '"');
  report.notes.assign(1000, quotes);
  report.tails.assign(8, {1, 0, "stderr", std::string(kMaxTail, '"')});
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    report.workers.push_back({.rank = i % 64, .generation = 1, .end = 100, .exit = quotes});
    report.checkpoints.push_back({.at = i / 200.0, .step = i});
    report.replays.push_back({i, i + 1, 2});
    report.generations.push_back({.generation = i});
    report.evals.push_back({.step = i, .accuracy = 0.5});
  }
  for (std::uint32_t i = 0; i < 1000; ++i) {
    report.faults.push_back({.generation = i,
                             .rank = i % 64,
                             .cause = quotes,
                             .exit = quotes,
                             .others = others,
                             .what = quotes,
                             .exception = quotes,
                             .decision = quotes,
                             .step = i + 1,
                             .died = 1,
                             .stepping = 90,
                             .lost = {.start = 89}});
  }
  for (std::uint64_t i = 0; i < kMostPoints; ++i) report.losses.push_back({i, i, 1, 2, 3, 2});
  report.step_times.samples = 1;
  report.train_times.points.assign(kMostTimePoints, {.mean = 1, .p95 = 2, .max = 3});
  const std::string page = ReportPage(report);
  EXPECT_LT(page.size(), 1'000'000U);
  EXPECT_EQ(WhatIsMalformed(page), "");
}

/// A run of two ranks in which rank 0 died `faults` times, the last time with the longest recovery.
RunReport RunWithFaults(std::size_t faults) {
  RunReport report;
  report.facts.ranks = 2;
  report.wall = 10 * static_cast<double>(faults + 1);
  for (std::size_t i = 0; i < faults; ++i) {
    const double died = 10 * static_cast<double>(i + 1);
    const double again = died + 0.1 + 0.001 * static_cast<double>(i);
    report.workers.push_back({.rank = 0, .generation = i + 1, .begin = died - 9.5, .end = died});
    report.faults.push_back({.died = died,
                             .paused = died + 0.01,
                             .stopped = died + 0.02,
                             .stepping = again,
                             .lost = {.detect = 0.01, .stop = 0.01, .start = again - died - 0.02}});
    report.lost.detect += 0.01;
  }
  report.workers.push_back({.rank = 0, .generation = faults + 1, .begin = report.wall - 9.99});
  return report;
}

TEST(ReportPage, TellsOfAFaultThatComesAgainOnceWithItsGenerations) {
  RunReport report = RunWithFaults(9);
  report.tails.clear();
  for (std::size_t i = 0; i < report.faults.size(); ++i) {
    FaultReport& fault = report.faults[i];
    fault.rank = 0;
    fault.generation = i + 1;
    fault.what = "ended with exit code 1";
    fault.exception = i == 3 ? "OSError: gone" : "ValueError: bad";
    fault.decision = fmt::format("process restart {} of 9", i + 1);
    fault.step = i == 4 ? 0 : 7;
    report.tails.push_back({i + 1, 0, "stderr", fault.exception + "\n"});
  }
  const std::string page = ReportPage(report);
  EXPECT_THAT(
      page,
      HasSubstr("<p>Rank 0, 8 times, generations 1–3, 5–9, at step 7 (7 times) and before its "
                "first step: <b>ended with exit code 1</b> <code>ValueError: bad</code> <small>at "
                "last: process restart "
                "9 of 9</small></p>"));
  EXPECT_THAT(page, HasSubstr("<p>Rank 0, generation 4: <b>ended with exit code 1</b> "
                              "<code>OSError: gone</code> <small>process restart 4 of 9</small>"));
  EXPECT_THAT(page, HasSubstr("<summary>rank 0, generations 1–3, 5–9, the end of stderr<"));
  EXPECT_THAT(page, HasSubstr("<summary>rank 0, generation 4, the end of stderr<"));
  EXPECT_EQ(WhatIsMalformed(page), "");
}

TEST(ReportPage, TellsTheStagesOfAFaultOnceWithTheReplay) {
  const std::string page = PageOf(FakeRunOptions{.ranks = 2});
  EXPECT_EQ(CountOf(page, "<i class=\"swatch l-detect\">"), 1U);
  EXPECT_EQ(CountOf(page, "<i class=\"swatch l-replay\">"), 1U);
  EXPECT_THAT(page, HasSubstr("lost, the replay that follows included</h3>"));
}

TEST(ReportPage, TellsOfAFaultWithoutACloseUpWhereTheTimeWent) {
  RunReport report = RunWithFaults(1);
  report.faults[0].stepping.reset();
  report.faults[0].lost.unknown = 1;
  const std::string page = ReportPage(report);
  EXPECT_THAT(page, Not(HasSubstr("Up close")));
  EXPECT_EQ(CountOf(page, "<i class=\"swatch l-detect\">"), 1U);
}

TEST(ReportPage, ShowsAStageThatIsTooShortToSee) {
  RunReport report = RunWithFaults(1);
  report.faults[0].lost.stop = 0.00006;
  const std::string page = ReportPage(report);
  EXPECT_THAT(page, HasSubstr("stop <b>under 1 ms</b>"));
  static const std::regex kStop(R"re(<rect class="l-stop" x="([\d.]+)" y="0" width="([\d.]+)")re");
  static const std::regex kStart(
      R"re(<rect class="l-start" x="([\d.]+)" y="0" width="([\d.]+)")re");
  std::smatch stop;
  std::smatch start;
  ASSERT_TRUE(std::regex_search(page, stop, kStop));
  ASSERT_TRUE(std::regex_search(page, start, kStart));
  EXPECT_GE(std::stod(stop[2]), 5);
  EXPECT_NEAR(std::stod(stop[1]) + std::stod(stop[2]), std::stod(start[1]), 0.2);  // not covered
  EXPECT_NEAR(std::stod(start[1]) + std::stod(start[2]), 1000, 0.5);
}

TEST(ReportPage, LeavesEvaluationOutOfTheStepTimesAndSaysSo) {
  const std::string page =
      PageOf(FakeRunOptions{.ranks = 1, .steps = 50, .fault_step = 0, .eval_every = 50});
  EXPECT_THAT(page, Not(HasSubstr("swatch p-eval\"></i>eval")));
  EXPECT_THAT(page, HasSubstr("Evaluation, "));
}

TEST(ReportPage, CountsAsSurvivedWhatItsTableDoesNotCallOtherwise) {
  RunReport report = RunWithFaults(3);
  report.faults[1].stepping.reset();  // the next one came before the first step
  report.faults[1].cut = report.faults[2].died;
  report.faults[2].stepping.reset();
  const std::string page = ReportPage(report);
  EXPECT_THAT(page, HasSubstr("<dt>Faults survived</dt><dd>2 of 3<"));
  const auto first = page.find("not survived");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(page.find("not survived", first + 1), std::string::npos);
  EXPECT_EQ(WhatIsMalformed(page), "");
}

TEST(ReportPage, ShowsFewRecoveriesEachAndOfManyTheLongestOnly) {
  const std::string few = ReportPage(RunWithFaults(2));
  EXPECT_THAT(few, HasSubstr("Up close: rank 0 dies, recovery takes 100 ms"));
  EXPECT_THAT(few, HasSubstr("Up close: rank 0 dies, recovery takes 101 ms"));
  const std::string many = ReportPage(RunWithFaults(4));
  EXPECT_THAT(many, HasSubstr("Up close: rank 0 dies, recovery takes 103 ms"));
  EXPECT_THAT(many, Not(HasSubstr("recovery takes 102 ms")));
  EXPECT_THAT(many, HasSubstr("<h3>4 faults: 40 ms lost in all</h3>"));
}

TEST(ReportPage, KeepsTheNameOfAGenerationClearOfTheMarkOfADeath) {
  const std::string page = ReportPage(RunWithFaults(1));
  EXPECT_THAT(page, HasSubstr("onbar tomark\" style=\"left:2.5%;"));  // until it died at 50 %
  EXPECT_THAT(page, HasSubstr("onbar aftermark\" style=\"left:50%;"));
}

TEST(ReportPage, EndsTheBarOfADeadRankWhereItDiedAndNotWhereThatWasSeen) {
  RunReport report = RunWithFaults(1);
  report.workers[0].end = 12;
  EXPECT_THAT(ReportPage(report), HasSubstr("rank 0, generation 1: 500 ms to 10.0 s,"));
}

TEST(ReportPage, BreaksNoTimeOverTwoLines) {
  RunReport report = RunWithFaults(1);
  report.wall = 76;
  report.steps = 800;
  report.state = RunState::kSucceeded;
  EXPECT_THAT(ReportPage(report), HasSubstr(" — 800\u00A0steps in 1\u00A0min\u00A016\u00A0s, "));
}

TEST(ReportPage, StaysSmallForManyRanks) {
  const std::string page = PageOf({.ranks = 200, .steps = 20, .fault_step = 11, .fault_rank = 150});
  EXPECT_LT(page.size(), 1'000'000U);
  EXPECT_THAT(page, HasSubstr("64 of 200 ranks are drawn"));
  EXPECT_THAT(page, HasSubstr("<span style=\"top:99.2%\">rank 150</span>"));
}

TEST(ReportPage, MakesAPageOfARunThatHasJustBegun) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.steps = 10, .fault_step = 0, .result = false});
  for (const char* file :
       {"events.jsonl", "steps/rank-0.jsonl", "steps/rank-1.jsonl", "eval.jsonl", "job.yaml"}) {
    std::filesystem::remove(scratch.path() + "/" + file);
  }
  const std::string page = PageOf(scratch);
  EXPECT_EQ(WhatIsMalformed(page), "");
  EXPECT_THAT(page, HasSubstr("ended without a word"));
}

}  // namespace
}  // namespace muster::profile

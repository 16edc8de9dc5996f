#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "profile/report/fake_run.h"
#include "profile/report/go_on.h"
#include "profile/report/report_json.h"
#include "profile/report/scratch.h"
#include "profile/report/summary.h"

namespace muster::profile {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

RunReport ReportOf(const Scratch& scratch) {
  const auto files = RunFiles::Open(scratch.path());
  auto run = ReadRun(*files);
  EXPECT_TRUE(run.has_value());
  return BuildReport(std::move(*run));
}

RunReport ReportOf(const FakeRunOptions& options) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), options);
  return ReportOf(scratch);
}

TEST(BuildReport, MeasuresTheFaultByTheDefinitionsOfTheRunFolder) {
  const RunReport report = ReportOf(FakeRunOptions{});
  ASSERT_EQ(report.faults.size(), 1U);
  const FaultReport& fault = report.faults[0];
  EXPECT_EQ(fault.rank, 1U);
  EXPECT_EQ(fault.step, 342U);
  EXPECT_EQ(fault.exit, "SIGKILL");
  EXPECT_NEAR(fault.lost.detect, 0.022, 1e-9);
  EXPECT_NEAR(fault.lost.stop, 0.006, 1e-9);
  EXPECT_NEAR(fault.lost.start, 0.1961, 1e-9);  // two forks, start-up, the later rank's first begin
  ASSERT_TRUE(fault.caught_up.has_value());
  EXPECT_GT(fault.lost.replay, 42 * 0.045);  // steps 301 to 342
  EXPECT_LT(fault.lost.replay, 42 * 0.080);
  EXPECT_EQ(report.restarts, 1U);
  EXPECT_EQ(report.steps, 600U);
  ASSERT_EQ(report.replays.size(), 1U);
  EXPECT_EQ(report.replays[0].first_step, 301U);
  EXPECT_EQ(report.replays[0].last_step, 341U);
  EXPECT_THAT(report.notes, IsEmpty());
}

void WriteFault(const Scratch& scratch, std::string_view tail,
                std::string_view ranks = R"({"rank":0,"state":"running"})") {
  std::ofstream(scratch.path() + "/fault-1.json")
      << R"({"format":"muster-fault/1","rank":1,"generation":1,"step":341,"cause":"killed by SIGKILL",)"
      << R"("exception":"ValueError: \u001b[31mbad\u001b[0m <b>","decision":"all 2 ranks restarted",)"
      << R"("ranks":[)" << ranks << R"(],"stderr_tail":")" << tail << R"("})";
}

TEST(BuildReport, TellsWhatTheRecordOfAFaultSays) {
  const Scratch scratch;
  WriteFakeRun(scratch.path());
  WriteFault(scratch, "kept only here");
  std::filesystem::remove(scratch.path() + "/logs/rank-1/gen-1.stderr.log");
  const RunReport report = ReportOf(scratch);
  EXPECT_THAT(report.notes, IsEmpty());
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_EQ(report.faults[0].what, "killed by SIGKILL");
  EXPECT_EQ(report.faults[0].decision, "all 2 ranks restarted");
  ASSERT_EQ(report.tails.size(), 1U);
  EXPECT_EQ(report.tails[0].text, "kept only here");
  EXPECT_THAT(SummaryText(report), HasSubstr("ValueError: bad <b>"));
  const auto json = nlohmann::json::parse(ReportJson(report));
  EXPECT_EQ(json["faults"][0]["exception"], "ValueError: bad <b>");
}

TEST(BuildReport, NotesARecordOfAFaultThatIsNone) {
  const Scratch scratch;
  WriteFakeRun(scratch.path());
  for (const char* text : {"", "[]", "{\"format\":\"muster-fault/1\"}",
                           "{\"format\":\"muster-fault/1\",\"rank\":-1,\"generation\":1}"}) {
    std::ofstream(scratch.path() + "/fault-1.json") << text;
    EXPECT_THAT(ReportOf(scratch).notes, Contains("fault-1.json is not a muster-fault/1 document"));
  }
  WriteFault(scratch, std::string(5 << 20, 'x'));
  EXPECT_THAT(ReportOf(scratch).notes, Contains(HasSubstr("fault-1.json")));
}

TEST(BuildReport, SplitsTheWholeWallTime) {
  const RunReport report = ReportOf(FakeRunOptions{});
  const TimeBudget& budget = report.budget;
  EXPECT_NEAR(budget.startup + budget.training + budget.lost + budget.ending + budget.other,
              report.wall, 1e-9);
  ASSERT_TRUE(report.goodput.has_value());
  EXPECT_GT(*report.goodput, 0.85);
  EXPECT_LT(*report.goodput, 1.0);
}

TEST(Verdict, SaysInWordsWhatHappened) {
  EXPECT_THAT(Verdict(ReportOf(FakeRunOptions{})),
              testing::MatchesRegex(
                  "SUCCEEDED — 600 steps in [0-9.]+ s, one fault survived, [0-9.]+ s lost"));
  EXPECT_THAT(Verdict(ReportOf({.fault_step = 0})), HasSubstr("no faults"));
  EXPECT_EQ(Verdict(ReportOf({.recovers = false, .reason = "no restart left"})),
            "FAILED after 341 steps — no restart left");
  EXPECT_EQ(Verdict(ReportOf({.recovers = false})),
            "FAILED after 341 steps — rank 1 ended with SIGKILL");
  RunReport report = ReportOf({.recovers = false});
  report.faults.back().exception = "ValueError: bad; worse.";
  report.reason =
      "rank 1 hung: in backward for 1.9 s at step 341: ValueError: bad; worse; not "
      "started again: the same, at the same step, for the second time";
  EXPECT_EQ(Verdict(report),
            "FAILED after 341 steps — rank 1 hung: in backward for 1.9 s at step 341; not started "
            "again");
  EXPECT_THAT(SummaryText(report), HasSubstr("\n  reason      " + report.reason + "\n"));
  report.reason = "no restart left";
  EXPECT_THAT(SummaryText(report), Not(HasSubstr("  reason  ")));
  EXPECT_EQ(Verdict(ReportOf({.steps = 20, .fault_step = 0, .result = false})),
            "UNFINISHED — muster run ended without a word after 20 steps");
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteLines(const std::string& path, const std::vector<std::string>& lines) {
  std::ofstream file(path);
  for (const std::string& line : lines) file << line << "\n";
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(Verdict, ClaimsNoFaultlessRunWhoseEventsAreLostOrCut) {
  const Scratch scratch;
  WriteFakeRun(scratch.path());
  const std::string events = scratch.path() + "/events.jsonl";
  std::vector<std::string> lines = LinesOf(events);
  std::erase_if(lines, [](const auto& l) { return l.find("\"fault\"") != std::string::npos; });
  WriteLines(events, lines);
  RunReport cut = ReportOf(scratch);
  EXPECT_THAT(cut.notes, Contains(HasSubstr("restarted 1 time, events.jsonl tells of 0 faults")));
  EXPECT_THAT(Verdict(cut), HasSubstr("1 restart for reasons that are not recorded"));
  std::filesystem::remove(events);
  RunReport lost = ReportOf(scratch);
  EXPECT_THAT(lost.notes, Contains(HasSubstr("events.jsonl is missing or empty")));
  EXPECT_THAT(Verdict(lost), testing::Not(HasSubstr("no faults")));
}

TEST(Verdict, ClaimsNoFaultlessRunWithoutEventsEvenWhenNothingWasRestarted) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.steps = 10, .fault_step = 0});
  WriteLines(scratch.path() + "/events.jsonl", {});
  const RunReport report = ReportOf(scratch);
  EXPECT_THAT(report.notes, Contains(HasSubstr("events.jsonl is missing or empty")));
  EXPECT_EQ(Verdict(report).find("no faults"), std::string::npos) << Verdict(report);
}

TEST(BuildReport, SaysThatTheEventsEndBeforeTheRun) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.steps = 10, .fault_step = 0});
  std::vector<std::string> lines = LinesOf(scratch.path() + "/events.jsonl");
  lines.pop_back();
  WriteLines(scratch.path() + "/events.jsonl", lines);
  EXPECT_THAT(ReportOf(scratch).notes, Contains(HasSubstr("ends before the run did")));
}

TEST(BuildReport, SortsRecordsThatLostTheirOrderAndSaysSo) {
  const Scratch scratch;
  WriteFakeRun(scratch.path());
  const RunReport whole = ReportOf(scratch);
  for (const char* file : {"/steps/rank-0.jsonl", "/steps/rank-1.jsonl", "/events.jsonl"}) {
    std::vector<std::string> lines = LinesOf(scratch.path() + file);
    std::ranges::reverse(lines);
    WriteLines(scratch.path() + file, lines);
    EXPECT_THAT(ReportOf(scratch).notes,
                Contains(std::string(file).substr(1) + " is not in the order of its times; it was "
                                                       "sorted by them"));
  }
  const RunReport report = ReportOf(scratch);
  EXPECT_EQ(report.goodput, whole.goodput);
  EXPECT_EQ(report.faults.size(), whole.faults.size());
}

TEST(BuildReport, NotesAJobFileOrAResultThatIsNone) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.steps = 10, .fault_step = 0});
  const std::string job = scratch.path() + "/job.yaml";
  const std::string whole = ReadText(job);
  for (const std::string& bad : {std::string(), std::string("junk"), whole.substr(0, 60)}) {
    std::ofstream(job) << bad;
    EXPECT_THAT(ReportOf(scratch).notes, Contains(HasSubstr("job.yaml is not whole"))) << bad;
  }
  std::ofstream(job) << whole;
  std::filesystem::remove(scratch.path() + "/result.json");
  EXPECT_THAT(ReportOf(scratch).notes, Contains(HasSubstr("result.json is missing")));
  std::filesystem::create_directory(scratch.path() + "/result.json");
  EXPECT_THAT(ReportOf(scratch).notes, Contains(HasSubstr("result.json is not a regular file")));
  std::filesystem::remove(scratch.path() + "/result.json");
  ASSERT_EQ(::mkfifo((scratch.path() + "/result.json").c_str(), 0600), 0);
  EXPECT_THAT(ReportOf(scratch).notes, Contains(HasSubstr("result.json is not a regular file")));
}

TEST(BuildReport, LeavesAFaultOpenThatNobodySurvived) {
  const RunReport report = ReportOf({.recovers = false});
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_FALSE(report.faults[0].survived());
  EXPECT_TRUE(report.faults[0].stopped.has_value());
  EXPECT_EQ(report.faults[0].lost.start, 0);
}

TEST(BuildReport, SaysOfAProgramWithoutStepsOnlyWhatIsKnown) {
  const Scratch scratch;
  WriteFakeRun(scratch.path());
  std::filesystem::remove_all(scratch.path() + "/steps");
  std::filesystem::remove(scratch.path() + "/result.json");
  std::ofstream(scratch.path() + "/result.json")
      << R"({"format":"muster-result/1","state":"SUCCEEDED","exit_code":0,"steps":null,"ended_ns":5030000000000})";
  const RunReport report = ReportOf(scratch);
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_TRUE(report.faults[0].survived());
  EXPECT_NEAR(report.faults[0].lost.start, 0.016, 1e-9);  // two forks of 8 ms
  EXPECT_NEAR(report.faults[0].lost.unknown, report.faults[0].died - 0.004, 1e-6);
  EXPECT_THAT(Verdict(report),
              testing::MatchesRegex("SUCCEEDED — finished in 30.0 s, one fault survived, between "
                                    "[0-9.]+ ms and [0-9.]+ s lost"));
  EXPECT_THAT(SummaryText(report), HasSubstr("steps       not reported"));
  EXPECT_THAT(SummaryText(report), HasSubstr(": processes started after 44 ms (detect 22 ms, "));
  const auto json = nlohmann::json::parse(ReportJson(report));
  EXPECT_TRUE(json["steps"].is_null());
  EXPECT_TRUE(json["lost"]["replay_s"].is_null());
  EXPECT_TRUE(json["lost"]["total_s"].is_null());
  EXPECT_GT(json["lost"]["at_most_s"], 15);
  EXPECT_TRUE(json["faults"][0]["step"].is_null());
  EXPECT_TRUE(json["faults"][0]["recovery_s"].is_null());
  EXPECT_TRUE(json["faults"][0]["stepping_s"].is_null());
  EXPECT_GT(json["faults"][0]["restarted_s"], 15);
  for (const auto& part : json["budget"]) EXPECT_TRUE(part.is_null());
}

TEST(BuildReport, CountsARunThatGoesOnUntilNow) {
  RunRecords run;
  run.facts = {.created_ns = 5'000'000'000, .ranks = 1};
  run.events.push_back({.t_ns = 5'016'000'000, .event = "worker_started"});
  run.read_ns = 65'000'000'000;
  EXPECT_NEAR(BuildReport(run).wall, 0.016, 1e-9);  // nobody holds the lock: the last that is known
  run.lock_held = true;
  EXPECT_NEAR(BuildReport(run).wall, 60, 1e-9);
  EXPECT_EQ(Verdict(BuildReport(run)), "RUNNING — for 1 min 0 s so far, no faults");
}

TEST(BuildReport, DoesNotSayThatARunBrokeOffWhoseResultItCannotRead) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.steps = 10, .fault_step = 0});
  std::ofstream(scratch.path() + "/result.json") << R"({"format":"muster-result/2"})";
  EXPECT_THAT(Verdict(ReportOf(scratch)), testing::StartsWith("SUCCEEDED — 10 steps in"));
  std::filesystem::remove(scratch.path() + "/events.jsonl");
  const RunReport report = ReportOf(scratch);
  EXPECT_EQ(Verdict(report),
            "UNFINISHED — how it ended is not known: result.json has format 'muster-result/2'; "
            "this muster reads muster-result/1");
  EXPECT_EQ(report.go_on, "");
}

TEST(BuildReport, MakesSenseOfARunThatHasJustBegun) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.steps = 10, .fault_step = 0, .result = false});
  for (const char* file :
       {"events.jsonl", "steps/rank-0.jsonl", "steps/rank-1.jsonl", "eval.jsonl"}) {
    std::ofstream(scratch.path() + "/" + file) << "";
  }
  const RunReport report = ReportOf(scratch);
  EXPECT_EQ(report.steps, std::nullopt);
  EXPECT_EQ(report.goodput, std::nullopt);
  EXPECT_THAT(report.notes, Contains(HasSubstr("no rank recorded a finished step")));
  EXPECT_FALSE(nlohmann::json::parse(ReportJson(report), nullptr, false).is_discarded());
}

TEST(ReportJson, HasTheDocumentedShape) {
  const auto json = nlohmann::json::parse(ReportJson(ReportOf(FakeRunOptions{})));
  EXPECT_EQ(json["format"], "muster-report/1");
  EXPECT_EQ(json["state"], "SUCCEEDED");
  EXPECT_EQ(json["steps"], 600);
  EXPECT_EQ(json["faults"][0]["lost"]["detect_s"], 0.022);
  EXPECT_EQ(json["faults"][0]["recovery_s"], 0.2241);
  EXPECT_EQ(json["lost"]["total_s"], json["lost"]["at_most_s"]);
  EXPECT_EQ(json["run"]["seed"], 7);
  EXPECT_EQ(json["checkpoints"].size(), 6U);
  EXPECT_EQ(json["workers"].size(), 4U);
  EXPECT_LE(json["losses"].size(), 300U);
}

TEST(ReportJson, IsTheGoldenOfASmallRun) {
  const std::string got =
      ReportJson(ReportOf({.steps = 6, .fault_step = 5, .checkpoint_every = 3, .eval_every = 6}));
  std::ifstream file(std::string(MUSTER_REPORT_GOLDEN) + "/small_run.json");
  const std::string want((std::istreambuf_iterator<char>(file)), {});
  if (got != want) {
    const std::string out = testing::TempDir() + "/small_run.json";
    std::ofstream(out) << got;
    ADD_FAILURE() << "differs from golden/small_run.json; what came out is in " << out;
  }
}

TEST(SummaryText, SaysTheSameInAFewLines) {
  const std::string text = SummaryText(ReportOf(FakeRunOptions{}));
  EXPECT_THAT(text, HasSubstr("rank 1 killed by SIGKILL at step 342"));
  EXPECT_THAT(text,
              HasSubstr(": recovery 224 ms (detect 22 ms, stop 6 ms, start 196 ms), replay "));
  EXPECT_THAT(text, HasSubstr("\n              steps 301 to 341 done again\n"));
  EXPECT_THAT(text, HasSubstr("goodput"));
}

TEST(BuildReport, SaysHowToGoOnWithARunThatBrokeOffOrFailedWithACheckpoint) {
  for (const FakeRunOptions& options :
       {FakeRunOptions{.steps = 20, .fault_step = 0, .result = false},
        FakeRunOptions{.recovers = false}}) {
    const Scratch scratch;
    WriteFakeRun(scratch.path(), options);
    const std::string saved = scratch.path() + "/checkpoints";
    const std::string again = "muster run " + scratch.path() + "/job.yaml";
    EXPECT_EQ(ReportOf(scratch).go_on, again);  // the trainer saves elsewhere
    std::filesystem::create_directories(saved + "/step-000000000003.tmp");
    EXPECT_EQ(ReportOf(scratch).go_on, again);
    std::filesystem::create_directory(saved + "/step-000000000003");
    const RunReport report = ReportOf(scratch);
    EXPECT_EQ(report.go_on, again + " --checkpoint-dir " + saved);
    EXPECT_THAT(SummaryText(report), HasSubstr("to go on    " + report.go_on));
    EXPECT_EQ(nlohmann::json::parse(ReportJson(report))["go_on"], report.go_on);
  }
}

TEST(BuildReport, SaysNothingOfGoingOnWhereNothingIsLeftOrNothingWasKept) {
  for (const FakeRunOptions& options :
       {FakeRunOptions{.steps = 20, .fault_step = 0},
        FakeRunOptions{.fault_step = 20, .checkpoint_every = 1000, .recovers = false}}) {
    const RunReport report = ReportOf(options);
    EXPECT_EQ(report.go_on, "");
    EXPECT_THAT(SummaryText(report), testing::Not(HasSubstr("to go on")));
    EXPECT_TRUE(nlohmann::json::parse(ReportJson(report))["go_on"].is_null());
  }
}

TEST(CommandToGoOn, NamesNoFolderThatTheJobHasAlready) {
  EXPECT_EQ(CommandToGoOn("r",
                          "apiVersion: muster/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  "
                          "command: [a]\n  checkpoint: {dir: /kept}\n"),
            "muster run r/job.yaml");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
}

TEST(CommandToGoOn, GoesToTheFolderWhereTheRunWasStarted) {
  EXPECT_EQ(CommandToGoOn("/w/r", "", "/w/my work"), "cd '/w/my work' && muster run /w/r/job.yaml");
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.steps = 20, .fault_step = 0, .result = false});
  std::string facts = ReadText(scratch.path() + "/run.json");
  facts.insert(1, R"("cwd":"/w",)");
  std::ofstream(scratch.path() + "/run.json") << facts;
  EXPECT_THAT(ReportOf(scratch).go_on, testing::StartsWith("cd /w && muster run "));
}

TEST(CommandToGoOn, GivesTheFlagsThatTheJobFileCouldNotHold) {
  const std::string job = "kind: Job\n";
  EXPECT_EQ(FlagsLine({}), "");
  EXPECT_EQ(FlagsLine({"--grace", "5", "--role", "x"}), "# flags: --grace 5 --role x\n");
  EXPECT_EQ(CommandToGoOn("r", job + FlagsLine({"--grace", "5"})),
            "muster run r/job.yaml --grace 5");
  EXPECT_EQ(CommandToGoOn("r", job + FlagsLine({"--role", "a'b $(c)", "--line-prefix", "${rank}"})),
            "muster run r/job.yaml --role 'a'\\''b $(c)' --line-prefix '${rank}'");
}

TEST(CommandToGoOn, PutsNothingOfAFileBeforeAShellThatIsNoWord) {
  for (const char* line : {"# flags: --role 'a b\n", "# flags: ; rm x\n", "# flags: $(rm x)\n",
                           "# flags: 'a'\\''$(rm x)\n", "# flags: ''$(rm x)''\n", "# flags: \\\n",
                           "# flags: '\x1b[2J'\n", "# flags: \\'$(rm x)\\'\n", "# flags: a\n#\n",
                           "# flags: --grace 5"}) {
    EXPECT_EQ(CommandToGoOn("r", std::string("kind: Job\n") + line), "muster run r/job.yaml")
        << line;
  }
  EXPECT_EQ(FlagsLine({"--role", "a\nb"}), "# flags: --role 'a b'\n");
}

TEST(Verdict, CallsACtrlCNoFailure) {
  const RunReport report = ReportOf({.recovers = false, .reason = "interrupted by SIGINT"});
  EXPECT_THAT(Verdict(report),
              testing::MatchesRegex("INTERRUPTED by SIGINT after [0-9.]+ s — 341 steps done"));
  EXPECT_EQ(nlohmann::json::parse(ReportJson(report))["state"], "FAILED");
}

TEST(SummaryText, NamesEveryRankThatHadDied) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.ranks = 4});
  WriteFault(scratch, "",
             R"({"rank":0,"state":"running"},{"rank":1,"state":"failed"},[],)"
             R"({"rank":2,"state":"failed"},{"rank":"3","state":"failed"})");
  const RunReport report = ReportOf(scratch);
  EXPECT_THAT(SummaryText(report),
              HasSubstr("rank 1 killed by SIGKILL at step 342 (and rank 2), "));
  EXPECT_EQ(nlohmann::json::parse(ReportJson(report))["faults"][0]["others"],
            nlohmann::json::array({2}));
}

TEST(BuildReport, TellsTheLastOfTwoEvaluationsOfOneStep) {
  const Scratch scratch;
  WriteFakeRun(scratch.path(), {.ranks = 1, .steps = 50, .fault_step = 0, .eval_every = 0});
  std::ofstream evals(scratch.path() + "/eval.jsonl");
  for (const char* text :
       {R"("step":50,"gen":1,"accuracy":0.5)", R"("step":20,"gen":1,"accuracy":0.1)",
        R"("step":20,"gen":2,"accuracy":0.2)", R"("step":50,"gen":2,"accuracy":0.75)"}) {
    evals << "{" << text << ",\"samples\":9}\n";
  }
  evals.close();
  const RunReport report = ReportOf(scratch);
  ASSERT_EQ(report.evals.size(), 2U);
  EXPECT_EQ(report.evals[0].step, 20U);
  EXPECT_EQ(report.evals[1].accuracy, 0.75);
}

TEST(SummaryText, SaysOfCheckpointsHowManyWereSaved) {
  EXPECT_THAT(SummaryText(ReportOf(FakeRunOptions{})),
              HasSubstr("checkpoints 6 saved, the last at step 600"));
}

TEST(SummaryText, KeepsHostileNamesOffTheTerminal) {
  const std::string text =
      SummaryText(ReportOf({.name = R"(a\u001b[2Jb\nc)", .steps = 5, .fault_step = 0}));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("ab c"));
}

}  // namespace
}  // namespace muster::profile

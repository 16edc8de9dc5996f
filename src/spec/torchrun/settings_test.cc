#include "spec/torchrun/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "spec/torchrun/flags.h"

namespace muster::spec::torchrun {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;
using Kind = RanksPerNode::Kind;

Result<Settings> Read(const Words& words, const Environment& environment = {}) {
  const auto line = SplitRunLine(words, {});
  if (!line) return line.error();
  return ReadSettings(*line, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

Settings Good(const Words& words, const Environment& environment = {}) {
  const auto settings = Read(words, environment);
  EXPECT_TRUE(settings) << (settings ? "" : settings.error().message());
  return settings ? *settings : Settings{};
}

std::string Refusal(const Words& words, const Environment& environment = {}) {
  const auto settings = Read(words, environment);
  return settings ? "" : settings.error().message();
}

TEST(TorchrunSettings, AreThoseOfMusterWhereNothingIsAsked) {
  const Settings settings = Good({"t.py"});
  EXPECT_FALSE(settings.used);
  EXPECT_FALSE(settings.ranks);
  EXPECT_EQ(settings.role, "default");
  EXPECT_EQ(settings.runner, Runner::kScript);
  EXPECT_TRUE(settings.shown.Everything());
  EXPECT_EQ(settings.ignored, "");
}

TEST(TorchrunSettings, CountRanks) {
  EXPECT_EQ(Good({"--nproc-per-node", "8", "t.py"}).ranks, (RanksPerNode{Kind::kCount, 8}));
  EXPECT_EQ(Good({"--nproc-per-node=auto", "t.py"}).ranks->kind, Kind::kAuto);
  EXPECT_EQ(Good({"--nproc-per-node=cpu", "t.py"}).ranks->kind, Kind::kCpu);
  EXPECT_EQ(Good({"--nproc-per-node=gpu", "t.py"}).ranks->kind, Kind::kGpu);
  EXPECT_THAT(Refusal({"--nproc-per-node=xpu", "t.py"}), HasSubstr("counts no XPUs"));
  for (const char* bad : {"0", "-1", "x", "", "2.0", "99999999999"}) {
    EXPECT_THAT(Refusal({std::string("--nproc-per-node=") + bad, "t.py"}),
                HasSubstr("--nproc-per-node takes auto, cpu, gpu, xpu or a number above 0"));
  }
}

TEST(TorchrunSettings, TakeANumberOfNodesOrARange) {
  EXPECT_FALSE(Good({"t.py"}).nodes);
  EXPECT_EQ(Good({"--nnodes", "2", "t.py"}).nodes, (NodeRange{2, 2}));
  EXPECT_EQ(Good({"--nnodes", "1:4", "t.py"}).nodes, (NodeRange{1, 4}));
  EXPECT_THAT(Refusal({"--nnodes", "2", "--node-rank", "1", "t.py"}),
              HasSubstr("only the first host of several runs muster run"));
  for (const char* bad : {"0", "x", "2:1", "1:2:3", ":", ""})
    EXPECT_THAT(Refusal({std::string("--nnodes=") + bad, "t.py"}), HasSubstr("MIN:MAX"));
}

TEST(TorchrunSettings, AFlagWinsOverItsVariable) {
  const Environment environment = {{"PET_ROLE", "a"}, {"PET_NPROC_PER_NODE", "4"}};
  const Settings settings = Good({"--role", "b", "t.py"}, environment);
  EXPECT_EQ(settings.role, "b");
  EXPECT_EQ(settings.ranks->count, 4U);
  EXPECT_TRUE(settings.used);
}

TEST(TorchrunSettings, VariablesDoNotChangeAJobFile) {
  const Environment environment = {{"PET_NNODES", "7"}, {"PET_MAX_RESTARTS", "x"}};
  EXPECT_FALSE(Good({"job.yaml"}, environment).used);
  EXPECT_EQ(Refusal({"t.py"}, environment), "PET_MAX_RESTARTS takes a whole number, not 'x'");
}

TEST(TorchrunSettings, SwitchesAreNumbersInVariables) {
  EXPECT_EQ(Good({"mod"}, {{"PET_MODULE", "1"}}).runner, Runner::kModule);
  EXPECT_EQ(Good({"t.py"}, {{"PET_MODULE", "0"}}).runner, Runner::kScript);
  EXPECT_EQ(Refusal({"t.py"}, {{"PET_MODULE", "yes"}}), "PET_MODULE takes 0 or 1, not 'yes'");
}

TEST(TorchrunSettings, SayHowTheScriptIsRun) {
  EXPECT_EQ(Good({"-m", "mod"}).runner, Runner::kModule);
  EXPECT_EQ(Good({"--no-python", "a.out"}).runner, Runner::kProgram);
  EXPECT_EQ(Good({"--run-path", "--no-python", "/t.py"}).runner, Runner::kScript);
  EXPECT_EQ(Good({"--", "a.out"}, {{"PET_MODULE", "1"}}).runner, Runner::kProgram);
  EXPECT_EQ(Good({"-m", "--", "mod"}).runner, Runner::kModule);
  EXPECT_THAT(Refusal({"-m", "--no-python", "x"}), HasSubstr("contradict"));
}

TEST(TorchrunSettings, GiveRestartsAndTheGrace) {
  EXPECT_EQ(Good({"--max-restarts", "0", "t.py"}).max_restarts, 0U);
  EXPECT_EQ(Good({"t.py"}, {{"PET_MAX_RESTARTS", "5"}}).max_restarts, 5U);
  EXPECT_THAT(Refusal({"--max-restarts=-1", "t.py"}), HasSubstr("a whole number from 0"));
  EXPECT_EQ(Good({"t.py"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "9"}}).shutdown_s, 9U);
  EXPECT_EQ(
      Good({"--shutdown-timeout=4", "t.py"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "9"}}).shutdown_s,
      4U);
}

TEST(TorchrunSettings, KeepTheIdOfARendezvousThatIsTheUsers) {
  EXPECT_EQ(Good({"--rdzv-id", "7", "t.py"}).run_id, "7");
  EXPECT_EQ(Good({"--rdzv-id", "7", "--standalone", "t.py"}).run_id, "");
}

TEST(TorchrunSettings, ChooseWhatIsShown) {
  const auto shown = [](const Words& words) { return Good(words).shown; };
  EXPECT_EQ(shown({"-r3", "t.py"}).Of(5), 0U);
  EXPECT_EQ(shown({"-r3", "-t", "0:1", "t.py"}).Of(0), 1U);
  EXPECT_EQ(shown({"-r3", "-t", "0:1", "t.py"}).Of(1), 0U);
  EXPECT_EQ(shown({"-r", "0:1,12:2", "t.py"}).Of(12), 1U);
  EXPECT_EQ(shown({"-r", "0:1,12:2", "t.py"}).Of(3), 3U);
  EXPECT_EQ(shown({"--local-ranks-filter=0,2", "t.py"}).Of(1), 0U);
  EXPECT_EQ(shown({"--local-ranks-filter=0,2", "t.py"}).Of(2), 3U);
  for (const char* text : {"3", "0:1,12:2"}) EXPECT_EQ(ParseStreams(text)->Text(), text);
  EXPECT_EQ(RanksText(*ParseRanks("5,0,2")), "0,2,5");
  for (const char* bad : {"4", "x", "", "0:", "0:4", "0:1,", ":1", "0-1"}) {
    EXPECT_THAT(Refusal({std::string("--redirects=") + bad, "t.py"}),
                HasSubstr("--redirects takes"));
  }
  EXPECT_THAT(Refusal({"--local-ranks-filter", "a", "t.py"}), HasSubstr("ranks with commas"));
}

TEST(TorchrunSettings, SayOnceWhatHasNoMeaning) {
  const Settings settings = Good({"--rdzv-backend", "c10d", "--monitor-interval", "5", "t.py"},
                                 {{"PET_MASTER_PORT", "29500"}});
  EXPECT_EQ(settings.ignored,
            "--rdzv-backend, PET_MASTER_PORT (ranks, addresses and ports come from muster run "
            "itself); --monitor-interval (a death is seen at once)");
  EXPECT_THAT(Good({"--node-rank=0", "--standalone", "t.py"}).ignored, HasSubstr("--node-rank ("));
  EXPECT_THAT(Good({"t.py"}, {{"TORCHELASTIC_HEALTH_CHECK_PORT", "1"}}).ignored,
              HasSubstr("no health check server"));
  EXPECT_EQ(Refusal({"--start-method", "thread", "t.py"}),
            "--start-method takes one of spawn fork forkserver, not 'thread'");
  EXPECT_EQ(Refusal({"--monitor-interval", "soon", "t.py"}),
            "--monitor-interval takes a number, not 'soon'");
}

/// Torchrun's own default among the values: who writes it out has given it all the same.
TEST(TorchrunSettings, NameEveryFlagWithoutAMeaningThatIsGivenWhateverItsValue) {
  const std::map<std::string_view, Words> values = {
      {"rdzv-backend", {"static", "c10d"}},
      {"rdzv-endpoint", {"", "host:1"}},
      {"rdzv-conf", {"", "a=1"}},
      {"monitor-interval", {"0.1", "5"}},
      {"start-method", {"spawn", "fork"}},
      {"event-log-handler", {"null", "console"}},
      {"duplicate-stdout-filters", {"", "x"}},
      {"duplicate-stderr-filters", {"", "x"}},
      {"node-rank", {"0", "1"}},
      {"master-addr", {"127.0.0.1", "h"}},
      {"master-port", {"29500", "1"}},
      {"local-addr", {"", "h"}},
      {"logs-specs", {"", "x"}},
      {"numa-binding", {"node", "socket"}},
      {"signals-to-handle", {"SIGTERM,SIGINT,SIGHUP,SIGQUIT", "SIGUSR1"}},
  };
  std::size_t without = 0;
  for (const Flag& flag : Flags()) {
    if (flag.why.empty()) continue;
    ++without;
    ASSERT_TRUE(values.contains(flag.name)) << flag.name;
    for (const std::string& value : values.at(flag.name)) {
      const std::string option = "--" + std::string(flag.name);
      const std::string said = " (" + std::string(flag.why) + ")";
      EXPECT_EQ(Good({option + "=" + value, "t.py"}).ignored, option + said) << value;
      const std::string variable = VariableOf(flag);
      if (variable.empty()) continue;
      EXPECT_EQ(Good({"t.py"}, {{variable, value}}).ignored, variable + said) << value;
    }
  }
  EXPECT_EQ(without, values.size());
}

TEST(TorchrunSettings, PutNamesIntoALinePrefix) {
  EXPECT_EQ(LinePrefix("[${role_name}${rank}]:", "trainer", 12, 4), "[trainer12]:");
  EXPECT_EQ(LinePrefix("$local_rank $$ ${nothing} $", "r", 9, 1), "1 $ ${nothing} $");
}

}  // namespace
}  // namespace muster::spec::torchrun

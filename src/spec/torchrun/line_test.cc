#include "spec/torchrun/line.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::spec::torchrun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;

const std::vector<OwnOption> kOwn = {{"ranks", true}, {"n", true},      {"run-dir", true},
                                     {"json", false}, {"quiet", false}, {"help", false},
                                     {"h", false}};

RunLine Split(const Words& words) {
  auto line = SplitRunLine(words, kOwn);
  EXPECT_TRUE(line) << (line ? "" : line.error().message());
  return line ? *line : RunLine{};
}

std::string Refusal(const Words& words) {
  const auto line = SplitRunLine(words, kOwn);
  return line ? "" : line.error().message();
}

std::string Underscored(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

TEST(TorchrunLine, TakesEveryFlagInEverySpelling) {
  for (const Flag& flag : Flags()) {
    for (const std::string& name : {std::string(flag.name), Underscored(flag.name)}) {
      const bool is_switch = flag.kind == Flag::Kind::kSwitch;
      std::vector<Words> spellings = {{"--" + name}};
      if (!is_switch) spellings = {{"--" + name, "1"}, {"--" + name + "=1"}};
      for (Words words : spellings) {
        words.insert(words.end(), {"t.py", "--lr", "2"});
        const RunLine line = Split(words);
        ASSERT_EQ(line.flags.size(), 1U) << name;
        EXPECT_EQ(line.flags[0].flag->name, flag.name);
        EXPECT_EQ(line.flags[0].value, is_switch ? "" : "1");
        EXPECT_EQ(line.form, RunLine::Form::kScript);
        EXPECT_THAT(line.words, ElementsAre("t.py", "--lr", "2"));
      }
    }
  }
}

TEST(TorchrunLine, TakesEveryPrefixThatOnlyOneFlagHas) {
  for (const Flag& flag : Flags()) {
    for (std::size_t length = 1; length < flag.name.size(); ++length) {
      const std::string prefix(flag.name.substr(0, length));
      const auto with_it = std::ranges::count_if(
          Flags(), [&](const Flag& other) { return other.name.starts_with(prefix); });
      const auto found = FindFlag(prefix);
      if (with_it == 1) {
        ASSERT_TRUE(found) << prefix;
        EXPECT_EQ((*found)->name, flag.name);
      } else if (!found) {
        EXPECT_THAT(found.error().message(), HasSubstr(fmt::format("--{}", flag.name)));
      }
    }
  }
  EXPECT_EQ(Refusal({"--rdzv", "x"}),
            "--rdzv may be --rdzv-backend, --rdzv-endpoint, --rdzv-id, --rdzv-conf");
  EXPECT_EQ(Split({"--nproc_per=2"}).flags[0].flag->name, "nproc-per-node");
}

TEST(TorchrunLine, TakesLettersAsArgparseDoes) {
  for (const Words& words : std::vector<Words>{
           {"-m", "-r", "3", "mod"}, {"-mr3", "mod"}, {"-mr", "3", "mod"}, {"-m", "-r=3", "mod"}}) {
    const RunLine line = Split(words);
    EXPECT_TRUE(line.Has("module"));
    ASSERT_TRUE(line.Has("redirects"));
    EXPECT_EQ(*line.Value("redirects"), "3");
    EXPECT_THAT(line.words, ElementsAre("mod"));
  }
  EXPECT_EQ(*Split({"-t", "0:1,1:2", "t.py"}).Value("tee"), "0:1,1:2");
  EXPECT_EQ(Refusal({"-m=1", "mod"}), "--module takes no value");
}

TEST(TorchrunLine, LeavesOurOwnOptionsAsTheyStand) {
  const RunLine line = Split(
      {"-n", "2", "--run-dir", "job.yaml", "--quiet", "--standalone", "-n3", "-mn=4", "-h=1", "t"});
  EXPECT_THAT(line.own,
              ElementsAre("-n", "2", "--run-dir", "job.yaml", "--quiet", "-n3", "-n=4", "-h=1"));
  EXPECT_TRUE(line.Has("standalone"));
  EXPECT_THAT(line.words, ElementsAre("t"));
}

TEST(TorchrunLine, LeavesWhatStandsBehindAScriptToIt) {
  const RunLine line =
      Split({"--standalone", "t.py", "--json", "-n", "--", "--role", "x", "--help"});
  EXPECT_THAT(line.own, IsEmpty());
  EXPECT_EQ(line.flags.size(), 1U);
  EXPECT_THAT(line.words, ElementsAre("t.py", "--json", "-n", "--", "--role", "x", "--help"));
}

TEST(TorchrunLine, TakesACommandBehindTwoDashes) {
  const RunLine line = Split({"-n", "2", "--", "python", "job.yaml", "--role"});
  EXPECT_EQ(line.form, RunLine::Form::kCommand);
  EXPECT_THAT(line.words, ElementsAre("python", "job.yaml", "--role"));
  EXPECT_EQ(Split({"--standalone", "--"}).form, RunLine::Form::kNothing);
}

TEST(TorchrunLine, ReadsOptionsOnBothSidesOfAJobFile) {
  const RunLine line = Split({"--quiet", "job.yaml", "--run-dir", "r", "--nproc-per-node", "2"});
  EXPECT_EQ(line.form, RunLine::Form::kJobFile);
  EXPECT_THAT(line.words, ElementsAre("job.yaml"));
  EXPECT_THAT(line.own, ElementsAre("--quiet", "--run-dir", "r"));
  EXPECT_EQ(*line.Value("nproc-per-node"), "2");
  for (const Words& words : std::vector<Words>{{"job.yaml", "more"}, {"job.yaml", "--", "more"}}) {
    EXPECT_EQ(Refusal(words), "unexpected argument 'more' behind the job file job.yaml");
  }
  EXPECT_EQ(Split({"-m", "job.yaml"}).form, RunLine::Form::kScript);
  EXPECT_EQ(Split({"t.py", "job.yaml"}).form, RunLine::Form::kScript);
}

TEST(TorchrunLine, TheLastOfAFlagHolds) {
  EXPECT_EQ(*Split({"--role", "a", "--role=b"}).Value("role"), "b");
}

TEST(TorchrunLine, NamesWhatWasMeant) {
  EXPECT_EQ(Refusal({"--stadnalone"}), "unknown option --stadnalone: did you mean --standalone?");
  EXPECT_EQ(Refusal({"--nporc_per_node=2"}),
            "unknown option --nporc_per_node: did you mean --nproc-per-node?");
  EXPECT_EQ(Refusal({"--rnks", "2"}), "unknown option --rnks: did you mean --ranks?");
  EXPECT_EQ(Refusal({"-nproc-per-node", "2"}),
            "unknown option -nproc-per-node: did you mean --nproc-per-node?");
  EXPECT_EQ(Refusal({"-z"}), "unknown option -z");
  EXPECT_EQ(Refusal({"--colour=blue"}), "unknown option --colour");
}

TEST(TorchrunLine, NamesAFlagWithoutItsValueAndASwitchWithOne) {
  EXPECT_EQ(Refusal({"--role"}), "--role needs a value");
  EXPECT_EQ(Refusal({"--role", "--standalone"}), "--role needs a value");
  EXPECT_EQ(Refusal({"-r"}), "--redirects needs a value");
  EXPECT_EQ(Refusal({"--standalone=1"}), "--standalone takes no value");
  EXPECT_EQ(*Split({"--max-restarts", "-1"}).Value("max-restarts"), "-1");
}

TEST(TorchrunFlags, NameTheirVariables) {
  EXPECT_EQ(VariableOf(**FindFlag("nproc-per-node")), "PET_NPROC_PER_NODE");
  EXPECT_EQ(VariableOf(**FindFlag("numa-binding")), "");
}

}  // namespace
}  // namespace muster::spec::torchrun

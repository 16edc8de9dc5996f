#include "cli/run_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "cli/run_line.h"
#include "cli/verb.h"
#include "profile/report/go_on.h"
#include "spec/command_line.h"
#include "spec/torchrun/flags.h"

namespace muster::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

/// `muster run WORDS`, as main() reads it.
Result<RunFlags> Read(Words words, const Environment& environment = {}) {
  CLI::App app("About muster.", "muster");
  app.require_subcommand(1);
  Invocation invocation;
  CLI::App* run = AddSubcommand(app, "run", "Run", invocation);
  AddSubcommand(app, "show", "Show", invocation);
  RunFlags flags;
  AddRunFlags(*run, flags);
  words = MUSTER_TRY(TakeRunLine(app, words, invocation));
  MUSTER_TRY(spec::ParseCommandLine(app, words, "verb"));
  const auto lookup = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
  MUSTER_TRY(ReadTorchrun(invocation.line, lookup, flags));
  return flags;
}

Result<RunFlags> Typed(Words words, const Environment& environment = {}) {
  words.insert(words.begin(), "run");
  return Read(words, environment);
}

std::string Refusal(const Words& words) {
  const auto flags = Typed(words);
  return flags ? "" : flags.error().message();
}

Words Repeated(const Words& words, const Environment& environment = {}) {
  const auto flags = Typed(words, environment);
  EXPECT_TRUE(flags) << (flags ? "" : flags.error().message());
  return flags ? WordsToGoOn(*flags) : Words{"refused"};
}

/// A value that is not the default, as the command to go on spells it; none for a switch.
Words Sample(std::string_view flag) {
  const std::map<std::string_view, Words> values = {
      {"nodes", {"a,b"}},
      {"ssh", {"ssh -p 22"}},
      {"listen", {"10.0.0.7:29400"}},
      {"preload", {"torch,mymodel"}},
      {"report-hangs", {}},
      {"kernel-log", {"a file"}},
      {"grace", {"2.5"}},
      {"shutdown-timeout", {"7"}},
      {"role", {"it's a $(trainer)"}},
      {"rdzv-id", {"7"}},
      {"virtual-local-rank", {}},
      {"log-dir", {"my logs"}},
      {"quiet", {}},
      {"line-prefix", {"[${role_name}${rank}]:"}},
      {"redirects", {"0:1,3:2"}},
      {"tee", {"3"}},
      {"local-ranks-filter", {"0,2"}},
  };
  const auto found = values.find(flag);
  EXPECT_NE(found, values.end()) << flag;
  Words words = {"--" + std::string(flag)};
  if (found != values.end()) words.insert(words.end(), found->second.begin(), found->second.end());
  return words;
}

TEST(RunFlags, EveryOneEitherLastsOrSaysWhyNot) {
  CLI::App app;
  Invocation invocation;
  CLI::App* run = AddSubcommand(app, "run", "Run", invocation);
  RunFlags flags;
  AddRunFlags(*run, flags);
  std::vector<std::string> known;
  for (const CLI::Option* option : run->get_options())
    known.insert(known.end(), option->get_lnames().begin(), option->get_lnames().end());
  for (const auto& flag : spec::torchrun::Flags()) {
    const bool ours = std::ranges::find(known, flag.name) != known.end();
    if (flag.why.empty() && !ours) known.emplace_back(flag.name);
  }
  std::vector<std::string> told;
  for (const Lasting& row : LastingFlags()) {
    told.emplace_back(row.flag);
    EXPECT_NE(row.why.empty(), row.words == nullptr) << row.flag;
  }
  EXPECT_THAT(told, testing::UnorderedElementsAreArray(known));
}

TEST(RunFlags, ThoseThatLastAreTypedAgainAsTheyWere) {
  Words all;
  for (const Lasting& row : LastingFlags()) {
    if (row.words == nullptr) continue;
    const Words sample = Sample(row.flag);
    Words typed = sample;
    typed.emplace_back("job.yaml");
    EXPECT_EQ(Repeated(typed), sample);
    const std::string command =
        profile::CommandToGoOn("r", "kind: Job\n" + profile::FlagsLine(sample));
    std::string expected = "muster run r/job.yaml";
    for (const std::string& word : sample) expected += " " + profile::ShellWord(word);
    EXPECT_EQ(command, expected);
    if (row.flag == "shutdown-timeout") continue;  // not beside --grace
    all.insert(all.end(), sample.begin(), sample.end());
  }
  Words typed = all;
  typed.emplace_back("job.yaml");
  EXPECT_EQ(Repeated(typed), all);
  EXPECT_THAT(Repeated({"job.yaml"}), IsEmpty());
}

TEST(RunFlags, LastWhereAVariableGaveThem) {
  EXPECT_THAT(Repeated({"t.py"}, {{"PET_ROLE", "r"},
                                  {"PET_LOCAL_RANKS_FILTER", "1"},
                                  {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "$rank"}}),
              ElementsAre("--role", "r", "--line-prefix", "$rank", "--local-ranks-filter", "1"));
  EXPECT_THAT(Repeated({"--line-prefix", "a", "t.py"},
                       {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "$rank"}}),
              ElementsAre("--line-prefix", "a"));
  EXPECT_THAT(Repeated({"--grace=2", "t.py"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "9"}}),
              ElementsAre("--grace", "2"));
}

TEST(RunFlags, TakeAShortOptionInEverySpelling) {
  for (const Words& ranks : std::vector<Words>{
           {"-n", "3"}, {"-n3"}, {"-n=3"}, {"-mn=3"}, {"--ranks", "3"}, {"--ranks=3"}}) {
    Words words = ranks;
    words.emplace_back("x");
    const auto flags = Typed(words);
    ASSERT_TRUE(flags) << ranks[0] << flags.error().message();
    EXPECT_EQ(flags->ranks, 3U) << ranks[0];
  }
  EXPECT_EQ(Refusal({"-n=", "x"}), "--ranks needs a value");
  EXPECT_EQ(Refusal({"-n=x", "x"}), "--ranks takes a whole number, not 'x'");
}

TEST(RunFlags, TwoOfOneMeaningAreRefused) {
  EXPECT_EQ(Refusal({"-n", "2", "--nproc_per_node", "2", "t.py"}),
            "--ranks and --nproc-per-node are the same; both were given");
  EXPECT_EQ(Refusal({"--grace", "5", "--shutdown-timeout=7", "t.py"}),
            "--grace and --shutdown-timeout are the same; both were given");
  EXPECT_EQ(Refusal({"--run-dir", "a", "--log-dir", "b", "t.py"}),
            "--run-dir and --log-dir both say where the run folder is; both were given");
  // A variable is a default, not what was typed.
  EXPECT_TRUE(Typed({"-n2", "--grace=5", "--run-dir", "a", "t.py"},
                    {{"PET_NPROC_PER_NODE", "2"},
                     {"PET_LOG_DIR", "b"},
                     {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}}));
}

TEST(RunLine, WithoutItsVerbIsKnown) {
  const auto hint = [](const Words& words) {
    const auto flags = Read(words);
    return flags ? "" : flags.error().hint();
  };
  EXPECT_EQ(hint({"train.py", "--lr", "1"}), "to run it: muster run train.py --lr 1");
  EXPECT_EQ(hint({"job.yaml"}), "to run it: muster run job.yaml");
  EXPECT_EQ(hint({"-n=2", "my train.py"}), "to run it: muster run -n=2 'my train.py'");
  EXPECT_EQ(hint({"--nproc-per-node", "2", "t.py"}),
            "to run it: muster run --nproc-per-node 2 t.py");
  EXPECT_EQ(hint({"-n", "2", "--", "true"}), "to run it: muster run -n 2 -- true");
  EXPECT_EQ(hint({"python3", "t.py"}), "to run it: muster run python3 t.py");
  EXPECT_EQ(hint({"torchrun", "--standalone", "t.py"}), "to run it: muster run --standalone t.py");
  EXPECT_THAT(hint({"shwo", "r"}), HasSubstr("for the verbs"));
  EXPECT_THAT(hint({"--quiet", "run", "t.py"}), HasSubstr("stand behind its name"));
}

}  // namespace
}  // namespace muster::cli

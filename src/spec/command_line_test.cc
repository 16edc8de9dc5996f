#include "spec/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "spec/option_values.h"

namespace muster::spec {
namespace {

using testing::HasSubstr;

/// A program with every kind of word.
struct Program {
  CLI::App app{"About tool.", "tool"};
  std::uint64_t steps = 600;
  double rate = 0;
  bool flip = false;
  std::string form;
  unsigned threads = 0;
  std::string input;
  std::string output;
  std::vector<std::string> words;

  Program() {
    app.require_subcommand(1);
    CLI::App* make = app.add_subcommand("make", "Make it");
    make->add_option("INPUT", input, "From")->required();
    make->add_option("OUT", output, "To")->required();
    make->add_option("--steps", steps, "Steps");
    make->add_option("-r,--rate", rate, "Rate");
    make->add_flag("--flip,!--no-flip", flip, "Mirror");
    TakeOneOf(*make->add_option("--form", form, "Form"), {"auto", "idx", "images"});
    TakeWithin(*make->add_option("--threads", threads, "Threads"), {.least = 1, .most = 8});
    CLI::App* start = app.add_subcommand("start", "Start it");
    start->add_option("JOB|CMD", words, "What");
    start->add_option("-n,--ranks", steps, "Ranks");
    CLI::App* deep = app.add_subcommand("deep", "Below");
    deep->require_subcommand(1);
    deep->add_subcommand("show", "Show it");
  }

  Error Refuse(const std::vector<std::string>& line) {
    const auto parsed = ParseCommandLine(app, line, "verb");
    return parsed ? Error(Code::kBug, "parsed") : parsed.error();
  }
  std::string Help(const std::vector<std::string>& line) {
    const auto parsed = ParseCommandLine(app, line, "verb");
    return parsed ? parsed->value_or("acts") : parsed.error().message();
  }
};

TEST(CommandLine, FillsFlagsAndArguments) {
  Program program;
  EXPECT_EQ(program.Help({"make", "a", "--steps=7", "--no-flip", "-r", "-1.5", "--", "-b"}),
            "acts");
  EXPECT_EQ(program.input, "a");
  EXPECT_EQ(program.output, "-b");
  EXPECT_EQ(program.steps, 7U);
  EXPECT_EQ(program.rate, -1.5);
}

TEST(CommandLine, TakesAShortOptionsValueInEverySpelling) {
  for (const std::vector<std::string>& rate : std::vector<std::vector<std::string>>{
           {"-r", "2.5"}, {"-r2.5"}, {"-r=2.5"}, {"--rate", "2.5"}, {"--rate=2.5"}}) {
    std::vector<std::string> line = {"make", "a", "b"};
    line.insert(line.end(), rate.begin(), rate.end());
    Program program;
    EXPECT_EQ(program.Help(line), "acts") << rate[0];
    EXPECT_EQ(program.rate, 2.5) << rate[0];
  }
  EXPECT_EQ(Program().Refuse({"make", "a", "b", "-r="}).message(), "--rate needs a value");
  EXPECT_EQ(Program().Refuse({"make", "a", "b", "-r=x"}).message(),
            "--rate takes a number, not 'x'");
  EXPECT_EQ(Program().Refuse({"make", "-h=1"}).message(), "--help takes no value");
  // What stands for a value is left as it is.
  Program program;
  EXPECT_EQ(program.Help({"make", "a", "-r", "1", "--", "-r=2"}), "acts");
  EXPECT_EQ(program.output, "-r=2");
}

TEST(CommandLine, SaysWhereAnOptionOfASubcommandStands) {
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"--rate", "2", "make"}, {"--rate=2", "make", "a"}}) {
    const Error error = Program().Refuse(line);
    EXPECT_EQ(error.message(), "unknown option --rate in front of the verb");
    EXPECT_EQ(error.hint(),
              "options of a verb stand behind its name; run 'tool help' for the verbs");
  }
  EXPECT_EQ(Program().Refuse({"--hlep", "make"}).message(),
            "unknown option --hlep in front of the verb: did you mean --help?");
  EXPECT_EQ(Program().Refuse({"help", "help", "hlp"}).message(),
            "unknown verb 'hlp': did you mean --help?");
}

TEST(CommandLine, TellsWhichWordWasMeant) {
  EXPECT_EQ(Program().Refuse({"mkae"}).message(), "unknown verb 'mkae': did you mean 'make'?");
  EXPECT_EQ(Program().Refuse({"mkae"}).hint(), "run 'tool help' for the verbs");
  EXPECT_EQ(Program().Refuse({"deep", "shwo"}).message(),
            "unknown verb 'deep shwo': did you mean 'deep show'?");
  EXPECT_EQ(Program().Refuse({"zzzz"}).message(), "unknown verb 'zzzz'");
  EXPECT_EQ(Program().Refuse({"zzzz"}).hint(), "tool has make, start, deep");
  for (const char* option : {"--stpes", "--stpes=5", "-steps", "--STEPS"}) {
    const Error error = Program().Refuse({"make", "a", "b", option, "5"});
    EXPECT_THAT(error.message(), HasSubstr("did you mean --steps?")) << option;
    EXPECT_EQ(error.hint(), "run 'tool help make' for the options");
  }
  EXPECT_EQ(Program().Refuse({"make", "a", "b", "--colour"}).message(), "unknown option --colour");
}

TEST(CommandLine, TellsOfAnUnknownOptionBeforeWhatIsMissing) {
  EXPECT_THAT(Program().Refuse({"make", "--rat"}).message(), HasSubstr("did you mean --rate?"));
}

TEST(CommandLine, NamesWhatIsMissingAndWhatIsTooMuch) {
  EXPECT_EQ(Program().Refuse({}).message(), "tool needs a verb");
  EXPECT_EQ(Program().Refuse({"deep"}).message(), "tool deep needs a verb");
  EXPECT_EQ(Program().Refuse({"make"}).message(), "tool make needs INPUT and OUT");
  EXPECT_EQ(Program().Refuse({"make", "a"}).message(), "tool make needs OUT");
  EXPECT_EQ(Program().Refuse({"make", "a", "b", "c", "d"}).message(), "unexpected argument 'c'");
  EXPECT_EQ(Program().Refuse({"make", "a", "b", "--steps"}).message(), "--steps needs a value");
}

TEST(CommandLine, TellsANumberFromAWord) {
  for (const char* word : {"x", "-1", "1.5", "1e3"}) {
    EXPECT_EQ(Program().Refuse({"make", "a", "b", std::string("--steps=") + word}).message(),
              std::string("--steps takes a whole number, not '") + word + "'");
  }
  EXPECT_THAT(Program().Refuse({"make", "a", "b", "--steps", "99999999999999999999"}).message(),
              HasSubstr("too large"));
  EXPECT_EQ(Program().Refuse({"make", "a", "b", "-r", "fast"}).message(),
            "--rate takes a number, not 'fast'");
}

TEST(CommandLine, SaysWhatAValueMustBe) {
  const auto refuse = [](const std::string& word) {
    return Program().Refuse({"make", "a", "b", word}).message();
  };
  EXPECT_EQ(refuse("--form=png"), "--form takes auto, idx or images, not 'png'");
  EXPECT_EQ(refuse("--form=imgaes"),
            "--form takes auto, idx or images, not 'imgaes': did you mean images?");
  EXPECT_EQ(refuse("--form="), "--form needs a value");
  EXPECT_EQ(refuse("--threads=9"), "--threads takes a number from 1 to 8, not 9");
  EXPECT_EQ(refuse("--threads=0"), "--threads takes a number from 1 to 8, not 0");
  EXPECT_EQ(refuse("--flip=yes"), "--flip takes no value");
  Program program;
  EXPECT_EQ(program.Help({"make", "a", "b", "--form", "idx", "--threads", "8"}), "acts");
  EXPECT_EQ(program.form, "idx");
  EXPECT_EQ(program.threads, 8U);
}

TEST(CommandLine, TakesAnOptionOnce) {
  EXPECT_EQ(Program().Refuse({"make", "a", "b", "-r", "1", "--rate=2"}).message(),
            "--rate is given twice");
  EXPECT_EQ(Program().Help({"make", "a", "b", "--flip", "--no-flip"}), "acts");
}

TEST(CommandLine, LeavesTheOptionsOfACommandToIt) {
  Program program;
  EXPECT_EQ(program.Help({"start", "-n", "2", "--", "python", "t.py", "--lr", "1"}), "acts");
  const Error error = Program().Refuse({"start", "python", "t.py", "--lr", "1"});
  EXPECT_EQ(error.message(), "tool start takes no option --lr behind the command");
  EXPECT_THAT(error.hint(), HasSubstr("put -- before"));
}

TEST(CommandLine, HelpsWhereverItIsAskedFor) {
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"--help"}, {"help"}, {"help", "help"}, {"-h"}}) {
    EXPECT_THAT(Program().Help(line), HasSubstr("Usage: tool [OPTIONS] VERB"));
  }
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
           {"deep", "show", "--help"}, {"help", "deep", "show"}, {"deep", "help", "show"}}) {
    EXPECT_THAT(Program().Help(line), HasSubstr("Usage: tool deep show"));
  }
  EXPECT_EQ(Program().Help({"help", "deep", "shwo"}),
            "unknown verb 'deep shwo': did you mean 'deep show'?");
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"help", "start", "extra"},
                                             {"help", "make", "extra", "more"},
                                             {"deep", "help", "show", "extra"}}) {
    EXPECT_EQ(Program().Help(line), "unexpected argument 'extra'") << line[1];
  }
}

}  // namespace
}  // namespace muster::spec

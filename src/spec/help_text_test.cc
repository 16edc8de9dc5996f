#include "spec/help_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "spec/option_values.h"

namespace muster::spec {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::ResultOf;

struct Packer {
  CLI::App app{"Turn images into a dataset", "pack"};
  std::string format = "auto";
  std::string names;
  std::string file;
  std::string address;
  unsigned threads = 0;
  double grace = 30;
  std::string input;
  std::vector<std::string> rest;
  bool flip = false;

  Packer() {
    app.add_option("INPUT", input, "Folder of images")->required();
    app.add_option("REST", rest, "What else");
    TakeOneOf(*app.add_option("--format", format, "What INPUT is")->capture_default_str(),
              {"auto", "idx", "images"});
    auto* labels = app.add_option("--labels", names, "Names of the classes");
    app.add_option("--labels-file", file, "The same, one a line")
        ->type_name("FILE")
        ->excludes(labels);
    TakeWithin(
        *app.add_option("-t,--threads", threads, "Threads that read and check; 0: one a core")
             ->capture_default_str(),
        {.least = 0, .most = 256});
    app.add_option("--listen", address, "Where it listens")->type_name("HOST:PORT");
    app.add_option("--grace", grace, "Seconds")->capture_default_str();
    app.add_flag("--flip,!--no-flip", flip, "Mirror half of the images");
    app.footer(
        "tool pack DIR OUT\n\nA sentence that goes on for longer than one line of "
        "eighty\ncharacters, and "
        "is filled.");
  }
  std::string Help(std::size_t width) const {
    return HelpText(app, "tool pack", {.kind = "verb", .width = width});
  }
};

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(HelpText, SaysTypesDefaultsAndWhatExcludesInWords) {
  EXPECT_EQ(Packer().Help(80), R"(Turn images into a dataset
Usage: tool pack [OPTIONS] INPUT [REST...]

Arguments:
  INPUT  Folder of images
  REST   What else

Options:
  -h, --help          Print this help message and exit
  --format WORD       What INPUT is (auto, idx or images; default: auto)
  --labels TEXT       Names of the classes (not with --labels-file)
  --labels-file FILE  The same, one a line (not with --labels)
  -t, --threads N     Threads that read and check; 0: one a core (from 0 to 256;
                      default: 0)
  --listen HOST:PORT  Where it listens
  --grace NUMBER      Seconds (default: 30)
  --flip, --no-flip   Mirror half of the images

tool pack DIR OUT

A sentence that goes on for longer than one line of eighty characters, and is
filled.
)");
}

TEST(HelpText, KeepsWithinTheWidth) {
  for (const std::size_t width : {60U, 80U, 100U}) {
    const auto lines = LinesOf(Packer().Help(width));
    EXPECT_THAT(lines, Each(ResultOf(std::mem_fn(&std::string::size), testing::Le(width))))
        << width;
  }
}

TEST(HelpText, CountsCharactersAndNotBytes) {
  CLI::App app("A", "a");
  bool on = false;
  app.add_flag("--x", on, std::string(20, '-') + " ééééééééééééééééééééééééééééééééééééé");
  EXPECT_THAT(HelpText(app, "a", {.kind = "verb", .width = 80}), HasSubstr("- ééé"));
}

TEST(HelpText, ListsWhatIsBelowAndHowToReadOn) {
  CLI::App app("About tool.", "tool");
  CLI::App* data = app.add_subcommand("data", "Sets of images");
  data->add_subcommand("pack", "Make one");
  const std::string top = HelpText(app, "tool", {.kind = "verb"});
  EXPECT_THAT(top, HasSubstr("Usage: tool [OPTIONS] VERB\n"));
  EXPECT_THAT(top, HasSubstr("\nVerbs:\n  data  Sets of images\n\ntool help VERB explains one.\n"));
  EXPECT_THAT(HelpText(*data, "tool data", {.kind = "verb"}),
              HasSubstr("tool help data VERB explains one."));
}

TEST(HelpText, DoesNotRepeatWordsThatTheDescriptionHas) {
  CLI::App app("A", "a");
  std::string mode;
  TakeOneOf(*app.add_option("--mode", mode, "fast, or slow (exact)"), {"fast", "slow"});
  EXPECT_THAT(HelpText(app, "a", {.kind = "verb"}),
              HasSubstr("  --mode WORD  fast, or slow (exact)\n"));
}

TEST(HelpText, GivesALongNameALineOfItsOwn) {
  CLI::App app("A", "a");
  bool on = false;
  app.add_flag("--a-name-that-is-longer-than-the-column", on, "What it does");
  app.add_flag("--short", on, "Else");
  EXPECT_THAT(HelpText(app, "a", {.kind = "verb"}),
              HasSubstr("--a-name-that-is-longer-than-the-column\n              What it does\n"));
}

}  // namespace
}  // namespace muster::spec

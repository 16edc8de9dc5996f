#include "cli/pages.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::cli {
namespace {

std::string Shown(std::string_view text, std::string_view program,
                  const std::set<std::string>& files) {
  return WithPages(text, program, [&](const std::string& path) { return files.contains(path); });
}

TEST(Pages, AreNamedWhereTheyAreInstalled) {
  EXPECT_EQ(Shown("see docs/a.md; docs/b/c.md lists all", "/usr/bin/muster",
                  {"/usr/share/doc/muster/docs/a.md", "/usr/share/doc/muster/docs/b/c.md"}),
            "see /usr/share/doc/muster/docs/a.md; /usr/share/doc/muster/docs/b/c.md lists all");
}

TEST(Pages, AreNamedInTheSourcesThatTheProgramWasBuiltIn) {
  EXPECT_EQ(Shown("docs/a.md.", "/src/muster/build/release/bin/muster", {"/src/muster/docs/a.md"}),
            "/src/muster/docs/a.md.");
}

TEST(Pages, StayAsTheyAreWhereNoneIsFound) {
  EXPECT_EQ(
      Shown("docs/a.md and docs/b.md", "/usr/bin/muster", {"/usr/share/doc/muster/docs/b.md"}),
      "docs/a.md and /usr/share/doc/muster/docs/b.md");
  EXPECT_EQ(Shown("docs/a.md", "muster", {}), "docs/a.md");
  EXPECT_EQ(Shown("docs/ and .md", "/usr/bin/muster", {}), "docs/ and .md");
}

TEST(Pages, AreNoPartOfALongerPath) {
  EXPECT_EQ(Shown("/mine/docs/a.md", "/usr/bin/muster", {"/usr/share/doc/muster/docs/a.md"}),
            "/mine/docs/a.md");
}

}  // namespace
}  // namespace muster::cli

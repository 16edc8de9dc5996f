"""The checks of .ci/checks must find what they look for; a check that cannot fail is worth nothing."""

import importlib
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKS = ROOT / ".ci" / "checks"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """An empty git repository that the checks take for theirs; returns a function that writes a file."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.syspath_prepend(str(CHECKS))
    for name in ("sources", "functions", "layering", "sizes", "words", "links"):
        sys.modules.pop(name, None)
    sources = importlib.import_module("sources")
    monkeypatch.setattr(sources, "ROOT", tmp_path)  # before the others import it

    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write(".ci/caps-allow.txt", "# none\n")
    write("src/README.md", "# src\n")
    write.root = tmp_path
    return write


def run(name: str, capsys) -> tuple[int, str]:
    code = importlib.import_module(name).main()
    return code, capsys.readouterr().out


def commit(root: pathlib.Path, message: str) -> None:
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", message], check=True)


LIBRARY = "muster_library({} SOURCES a.cc DEPS {})\n"


@pytest.mark.parametrize(
    ("path", "text", "finding"),
    [
        ("src/os/a.cc", '#include "data/x.h"\n', "'os' may not include 'data'"),
        ("src/coll/a.cc", '#include "spec/env.h"\n', "'coll' may not include 'spec'"),
        ("src/cli/a.cc", '#include "server/x.h"\n', "may not include 'server'"),
        ("src/data/a.cc", "#include <torch/torch.h>\n", "libtorch is used only"),
        ("src/train/checkpoint/a.cc", "#include <ATen/ops/mm.h>\n", "libtorch is used only"),
        ("src/base/a.h", "#include <nlohmann/json.hpp>\n", "does not belong in a header"),
        ("src/os/a.cc", 'const char* home = std::getenv("HOME");\n', "only in src/spec/env.cc"),
        ("src/misc/a.cc", "int x;\n", "no place in the order"),
        ("src/os/CMakeLists.txt", LIBRARY.format("os", "data"), "DEPS names 'data', which no folder declares"),
    ],
)
def test_layering_names_what_breaks_the_order(repository, capsys, path, text, finding):
    repository(path, text)
    code, out = run("layering", capsys)
    assert code == 1
    assert finding in out


def test_layering_asks_for_a_link_where_there_is_an_include(repository, capsys):
    repository("src/base/CMakeLists.txt", LIBRARY.format("base", ""))
    repository("src/os/CMakeLists.txt", LIBRARY.format("os", "base"))
    repository("src/data/CMakeLists.txt", LIBRARY.format("data", "base"))
    repository("src/data/a.cc", '#include "os/x.h"\n')
    code, out = run("layering", capsys)
    assert (code, "DEPS do not lead there" in out) == (1, True)
    repository("src/data/CMakeLists.txt", LIBRARY.format("data", "os"))
    assert run("layering", capsys)[0] == 0


def test_layering_ignores_comments_and_takes_what_is_allowed(repository, capsys):
    repository("src/base/a.h", '// #include "data/x.h"\n/* getenv("A") */\n#include <string>\n')
    repository("src/agent/a.cc", '#include "base/a.h"\n#include "data/x.h"\n')
    repository("src/train/a.cc", "#include <torch/torch.h>\n")
    assert run("layering", capsys) == (0, "")


def function(name: str, lines: int) -> str:
    return f"int {name}() {{\n" + "  Call();\n" * (lines - 2) + "}\n"


def test_sizes_holds_functions_and_files_to_their_caps(repository, capsys):
    repository("src/a.cc", "namespace muster {\n" + function("Fits", 80) + function("Long", 81) + "}\n")
    repository("src/big.h", "//\n" * 301)
    repository("src/README.md", "x\n" * 41)
    code, out = run("sizes", capsys)
    assert code == 1
    assert "src/a.cc:82: Long has 81 lines" in out
    assert "src/big.h:1: the file has 301 lines" in out
    assert "src/README.md:1:" in out
    assert "Fits" not in out


def test_sizes_allow_list_may_only_shrink(repository, capsys):
    repository("src/a.cc", function("Long", 90))
    repository(".ci/caps-allow.txt", "src/a.cc:Long 95\n")
    commit(repository.root, "the list at its start")
    assert run("sizes", capsys)[0] == 0
    repository(".ci/caps-allow.txt", "src/a.cc:Long 96\n")
    assert "may only shrink" in run("sizes", capsys)[1]
    repository(".ci/caps-allow.txt", "src/a.cc:Long 95\nsrc/b.cc 900\n")
    assert "may only shrink" in run("sizes", capsys)[1]
    commit(repository.root, "committing does not make it right")
    assert "may only shrink" in run("sizes", capsys)[1]
    repository("src/a.cc", function("Long", 60))
    repository(".ci/caps-allow.txt", "src/a.cc:Long 95\n")
    assert "needs no allowance" in run("sizes", capsys)[1]


CPP = """
#define BODY(x) { x }
namespace muster::data {
/// A comment with { braces } and "quotes".
struct Options { int a = 0; std::vector<int> b{1, 2}; };
enum class Kind : int { kOne, kTwo };
Widget::Widget(int a, std::string b)
    : a_{a}, b_(std::move(b)), c_{F(1)} {
  Use("}}}{");
}
template <typename T>
  requires(std::is_integral_v<T>)
Result<T> Parse(std::string_view text) noexcept {
  auto lambda = [&](int x) { return x; };
  return lambda(1);
}
const std::array<int, 2> kTable = {{1, 2}};
class Reader {
 public:
  bool operator==(const Reader& other) const { return size_ == other.size_; }
  int size() const { return size_; }
 private:
  int size_{0};
  char c_ = '{';
  long big_ = 1'000'000;
};
auto Tail(int a = 3) -> int { return a; }
TEST(Parse, ReadsABrace) { EXPECT_EQ(R"x({)x", "{"); }
extern "C" {
int plain(void) { return 0; }
}
}  // namespace muster::data
"""


def test_functions_are_found_by_their_braces(repository):
    found = [f.name for f in importlib.import_module("functions").cpp_functions(CPP)]
    assert [name.split("::")[-1] for name in found] == [
        "Widget",
        "Parse",
        "operator==",
        "size",
        "Tail",
        "TEST(Parse, ReadsABrace)",
        "plain",
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("docs/a.md", "see /ho" + "me/someone/file\n"),
        ("a.sh", "curl https://py" + "pi.org/simple\n"),
        ("src/a.cc", "// TO" + "DO: later\n"),
        ("src/a.h", "class Job" + "Manager {};\n"),
        ("src/a.cc", "std::th" + "read t; t.det" + "ach();\n"),
        ("src/a_test.cc", "std::this_thread::sleep" + "_for(x);\n"),
        ("src/string_utils.cc", "int x;\n"),
    ],
)
def test_words_finds_what_must_not_be_there(repository, capsys, path, text):
    repository(path, text)
    assert run("words", capsys)[0] == 1


def test_sizes_asks_for_a_page_in_each_folder(repository, capsys):
    repository("src/os/a.cc", "int x;\n")
    assert "src/os:1: the folder has no README.md" in run("sizes", capsys)[1]
    repository("src/os/README.md", "# os\n")
    assert run("sizes", capsys)[0] == 0
    repository("src/os/deep/er/b.h", "int x;\n")
    assert "src/os/deep/er:1: the folder has no README.md" in run("sizes", capsys)[1]


def test_links_finds_pages_that_nobody_links(repository, capsys):
    repository("docs/a.md", "[x](b.md)\n")
    repository("docs/b.md", "[self](b.md)\n")
    assert "docs/a.md:1: no other page links here" in run("links", capsys)[1]
    repository("README.md", "[a](docs/a.md)\n")
    assert run("links", capsys)[0] == 0


def test_links_follow_files_and_headings(repository, capsys):
    repository("docs/a.md", "# A `b` c\n[x](b.md#the-end) [y](#a-b-c)\n```\n[no](link.md)\n```\n`[no](l.md)`\n")
    repository("docs/b.md", "## The end\n[a](a.md)\n")
    assert run("links", capsys) == (0, "")
    repository("docs/b.md", "## Another end\n")
    assert "no heading '#the-end'" in run("links", capsys)[1]
    repository("docs/a.md", "[x](c.md) ![p](p.svg)\n")
    code, out = run("links", capsys)
    assert (code, out.count("leads nowhere")) == (1, 2)

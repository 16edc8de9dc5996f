"""Which files .ci/tidy.py has read, what it remembers, and that a finding fails it. A script stands in for clang-tidy."""

import importlib
import json
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Fails on a source with the word `bad` in it and logs what it was asked to read.
STAND_IN = """#!/bin/sh
if [ "$1" = --version ]; then echo 1; exit 0; fi
echo "$4" >> "$0.log"
if grep -q bad "$4"; then echo "finding in $4"; exit 1; fi
"""


def commit(root: pathlib.Path) -> None:
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "a commit"], check=True)


class Clone:
    """A repository of one header that a.cc includes, and b.cc, all of it published as origin/main."""

    def __init__(self, root: pathlib.Path, module, capsys):
        self.root, self.module, self.capsys = root, module, capsys
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        (root / "src").mkdir()
        (root / "build/release").mkdir(parents=True)
        self.write(".gitignore", "build\n")
        self.write(".clang-tidy", "Checks: all\n")
        self.write("src/a.h", "int a();\n")
        self.write("src/a.cc", '#include "a.h"\n')
        self.write("src/b.cc", "int b;\n")
        self.declare("a.cc", "b.cc")
        commit(root)

    def declare(self, *names: str) -> None:
        commands = [{"file": str(self.root / "src" / name), "command": f"cc {name}"} for name in names]
        self.write("build/release/compile_commands.json", json.dumps(commands))

    def publish(self) -> None:
        subprocess.run(["git", "-C", str(self.root), "update-ref", "refs/remotes/origin/main", "HEAD"], check=True)

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def tidy(self) -> tuple[int, list[str], str]:
        """Exit status, the names of the files read, and what was printed."""
        log = pathlib.Path(self.module.TIDY + ".log")
        log.unlink(missing_ok=True)
        code = self.module.main()
        read = sorted(pathlib.Path(line).name for line in log.read_text().splitlines()) if log.exists() else []
        return code, read, self.capsys.readouterr().out


@pytest.fixture
def clone(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    module = importlib.import_module("tidy")
    stand_in = tmp_path / "clang-tidy"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    root = tmp_path / "clone"
    monkeypatch.setattr(module, "ROOT", root)
    monkeypatch.setattr(module, "BUILD", root / "build/release")
    monkeypatch.setattr(module, "SETTINGS", root / ".clang-tidy")
    monkeypatch.setattr(module, "FOLDERS", [root / "src"])
    monkeypatch.setattr(module, "MEMORY", tmp_path / "memory")
    monkeypatch.setattr(module, "TIDY", str(stand_in))
    monkeypatch.delenv("MUSTER_TIDY_ALL", raising=False)
    return Clone(root, module, capsys)


def test_reads_everything_when_there_is_nothing_to_compare_with(clone):
    assert clone.tidy()[:2] == (0, ["a.cc", "b.cc"])


def test_reads_nothing_of_what_is_published_unless_asked_for_all(clone, monkeypatch):
    clone.publish()
    assert clone.tidy()[:2] == (0, [])
    monkeypatch.setenv("MUSTER_TIDY_ALL", "1")
    assert clone.tidy()[:2] == (0, ["a.cc", "b.cc"])


@pytest.mark.parametrize("committed", [True, False])
def test_reads_whoever_reaches_a_header_that_differs(clone, committed):
    clone.publish()
    clone.write("src/a.h", "int a(int);\n")
    if committed:
        commit(clone.root)
    assert clone.tidy()[:2] == (0, ["a.cc"])


def test_reads_a_file_that_git_does_not_know_yet(clone):
    clone.publish()
    clone.write("src/new.cc", "int n;\n")
    clone.declare("a.cc", "new.cc")
    assert clone.tidy()[:2] == (0, ["new.cc"])


def test_reads_everything_when_its_settings_differ(clone):
    clone.publish()
    clone.write(".clang-tidy", "Checks: none\n")
    assert clone.tidy()[:2] == (0, ["a.cc", "b.cc"])


def test_a_finding_fails_is_shown_and_is_found_again(clone):
    clone.write("src/b.cc", "int bad;\n")
    code, read, printed = clone.tidy()
    assert (code, read) == (1, ["a.cc", "b.cc"])
    assert "finding in" in printed and "2 of 2" in printed and "1 with findings" in printed
    assert clone.tidy()[:2] == (1, ["b.cc"])  # what passed is remembered, what did not is not

"""Finds what must not be in the repository: paths and hosts of some machine, vague names, forgotten notes.

A line that has to say one of them ends in a comment 'allow: why'.
"""

import pathlib
import re

from sources import Findings, files, read

EVERYWHERE = [
    (re.compile(r"(?<![\w.~$}{)*-])/(home|root|work|opt|mnt|Users)/\w"), "a path of one machine"),
    (
        re.compile(
            r"\b(pypi\.org|pythonhosted\.org|registry\.npmjs\.org|deb\.debian\.org|security\.debian\.org|"
            r"download\.pytorch\.org|snapshot\.debian\.org)\b"
        ),
        "a registry's host",
    ),
    (re.compile(r"\b(TODO|FIXME|XXX)\b(?!\([a-z])"), "a note without an owner: TODO(name)"),
    (re.compile(r"^(<<<<<<<|>>>>>>>) "), "a conflict that git left"),
]
CPP = [
    (re.compile(r"\b(class|struct|namespace)\s+\w*(Manager|Helper|Utils?|Common)\b"), "a name that says nothing"),
    (re.compile(r"\bstd::(expected|format|print)\b"), "not in gcc 12's library"),
    (re.compile(r"\bco_(await|yield|return)\b"), "coroutines: gcc 12 miscompiles them"),
    (re.compile(r"\.detach\(\)"), "a detached thread: threads are joined"),
    (re.compile(r"\busing\s+namespace\s+std\b"), "using namespace std"),
]
CPP_TEST = [
    (re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\s*\(|(?<![\w.:>])sleep\s*\("), "a sleep in a test")
]
VAGUE_FILE = re.compile(r"(^|_)(util|utils|helper|helpers|common|manager|misc)(_|$)")
SKIPPED = {pathlib.Path("LICENSE"), pathlib.Path(".ci/checks/words.py")}
BINARY = {".png", ".jpg", ".jpeg", ".bin", ".arrow", ".safetensors", ".gz", ".webp", ".pdf"}


def rules_for(path: pathlib.Path) -> list[tuple[re.Pattern, str]]:
    rules = list(EVERYWHERE)
    if path.suffix in (".cc", ".h", ".c"):
        rules += CPP
        if path.stem.endswith("_test"):
            rules += CPP_TEST
    return rules


def main() -> int:
    findings = Findings("words")
    looked_at = 0
    for path in files():
        if path in SKIPPED or path.suffix in BINARY or path.parts[:2] == ("fuzz", "corpus"):
            continue
        if VAGUE_FILE.search(path.stem.lower()):
            findings.add(path, 1, "a file name that says nothing")
        try:
            text = read(path)
        except UnicodeDecodeError:
            continue
        looked_at += 1
        rules = rules_for(path)
        for number, line in enumerate(text.splitlines(), 1):
            for pattern, what in rules:
                if pattern.search(line) and "allow: " not in line:
                    findings.add(path, number, f"{what}: {line.strip()[:90]}")
    return findings.finish(f"{looked_at} files")


if __name__ == "__main__":
    raise SystemExit(main())

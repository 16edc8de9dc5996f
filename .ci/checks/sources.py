"""What the checks share: the files of the repository, C++ text without comments, and how a finding is told."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def files(*patterns: str) -> list[pathlib.Path]:
    """What git tracks or would track, relative to the root, in order; links and missing files left out."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    paths = sorted({pathlib.Path(name) for name in names if name})
    return [path for path in paths if (ROOT / path).is_file() and not (ROOT / path).is_symlink()]


def read(path: pathlib.Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


_TOKENS = re.compile(
    r"""//(?:\\\n|[^\n])*              # line comment
      | /\*.*?\*/                      # block comment
      | R"(?P<delim>[^()\\\s]{0,16})\(.*?\)(?P=delim)"   # raw string
      | "(?:\\.|[^"\\\n])*"            # string
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'   # character, but not 1'000
    """,
    re.VERBOSE | re.DOTALL,
)


def blank(text: str, *, keep_strings: bool = False) -> str:
    """C++ text of the same length and lines, comments and the insides of literals turned into blanks."""

    def replace(match: re.Match) -> str:
        token = match[0]
        if keep_strings and not token.startswith("/"):
            return token
        return re.sub(r"[^\n]", " ", token)

    return _TOKENS.sub(replace, text)


class Findings:
    """Collects what is wrong as 'file:line: sentence' and turns it into an exit code."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []

    def add(self, path: pathlib.Path | str, line: int, sentence: str) -> None:
        self.lines.append(f"{path}:{line}: {sentence}")

    def finish(self, looked_at: str) -> int:
        for line in self.lines:
            print(line)
        if self.lines:
            print(f"{self.name}: {len(self.lines)} findings")
            return 1
        print(f"{self.name}: {looked_at}, nothing wrong", file=sys.stderr)
        return 0

"""Holds files and functions to their caps.

.cc, .py, .sh: 800 lines; .h: 300; a function: 80; a folder's README.md: 40, and it must be there. What stands in caps-allow.txt
may be larger, up to the number there; that list may only shrink, which is checked against its own history.
"""

import pathlib
import subprocess

from functions import cpp_functions, python_functions
from sources import ROOT, Findings, files, read

CAPS = {".cc": 800, ".c": 800, ".py": 800, ".sh": 800, ".h": 300}
FUNCTION_CAP = 80
README_CAP = 40
ALLOW = pathlib.Path(".ci/caps-allow.txt")


def parse_allowances(text: str) -> dict[str, int]:
    """'path number' or 'path:function number' a line."""
    lines = (line.split("#")[0].split() for line in text.splitlines())
    return {words[0]: int(words[1]) for words in lines if words}


def git(*words: str) -> str:
    """What git prints; nothing where there is no history yet."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout


def check_only_shrinks(allowances: dict[str, int], findings: Findings) -> None:
    """Every version of the list that was ever committed must have room for today's."""
    commits = git("log", "--format=%H", "--diff-filter=AM", "--", str(ALLOW)).split()
    for commit in commits:
        before = parse_allowances(git("show", f"{commit}:{ALLOW}"))
        for name, cap in allowances.items():
            if cap > before.get(name, 0):
                findings.add(
                    ALLOW, 1, f"'{name} {cap}' is new or larger than in {commit[:9]}: the list may only shrink"
                )


def check_pages(sources: list[pathlib.Path], findings: Findings) -> None:
    """Each folder at the top that has sources, and each below src/ that has some, tells what it is in a README.md."""
    inner = {path.parent.parts[: None if path.parts[0] == "src" else 1] for path in sources if len(path.parts) > 1}
    for folder in sorted(pathlib.Path(*parts) for parts in inner):
        if not (ROOT / folder / "README.md").exists():
            findings.add(folder, 1, "the folder has no README.md")


def main() -> int:
    findings = Findings("sizes")
    allowances = parse_allowances(read(ALLOW))
    check_only_shrinks(allowances, findings)
    used: set[str] = set()

    def hold(name: str, path: pathlib.Path, line: int, lines: int, cap: int, what: str) -> None:
        if lines > cap and name in allowances:
            used.add(name)
            cap = allowances[name]
        if lines > cap:
            findings.add(path, line, f"{what} has {lines} lines, the cap is {cap}")

    functions = 0
    sources = files("*.cc", "*.c", "*.h", "*.py", "*.sh")
    for path in sources:
        text = read(path)
        hold(str(path), path, 1, text.count("\n"), CAPS[path.suffix], "the file")
        parse = {".py": python_functions, ".sh": lambda _: []}.get(path.suffix, cpp_functions)
        for function in parse(text):
            functions += 1
            hold(f"{path}:{function.name}", path, function.line, function.lines, FUNCTION_CAP, function.name)
    check_pages(sources, findings)
    for path in files("*/README.md"):
        hold(str(path), path, 1, read(path).count("\n"), README_CAP, "the folder's page")
    for name in sorted(set(allowances) - used):
        findings.add(ALLOW, 1, f"'{name}' needs no allowance any more: take it out")
    return findings.finish(f"{len(sources)} files, {functions} functions")


if __name__ == "__main__":
    raise SystemExit(main())

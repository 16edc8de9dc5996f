#!/usr/bin/env python3
"""Runs the legs of the tests and says where the time went.

    test.py               every leg, in the order below
    test.py lint asan     only those; one leg alone prints everything as it comes
    test.py list          what there is

A leg is .ci/legs/NAME.sh. Its output goes to build/ci/NAME.log and to the screen only when it fails; the
last lines of a run are the closing lines of ctest and pytest as they printed them. Legs go one after another:
each uses all cores by itself.
"""

import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEGS = {
    "checks": "format, layers, sizes, words, links, shellcheck, ruff",
    "release": "clang 19 release build and its tests",
    "headers": "every header compiled alone",
    "pytest": "end to end, formats read by other programs",
    "docs": "the commands of README and guides, run as written",
    "gcc": "gcc 12 build and tests without torch",
    "asan": "address and undefined-behaviour sanitizers; fuzz harnesses, 20 s each",
    "tsan": "thread sanitizer for what has threads",
    "tidy": "clang-tidy",
}
SUBSETS = {
    "lint": ["checks", "headers", "tidy"],
    "release-fast": None,
    "pytest-fast": None,
}
CLOSING = re.compile(
    r"^(\d+% tests passed, \d+ tests failed out of \d+|=+ .*\b(passed|failed|error).* =+|"
    r"fuzz: .*|checks: .*|tidy: .*|headers: .*)$"
)


def closing_lines(log: pathlib.Path) -> list[str]:
    lines = log.read_text(errors="replace").splitlines()
    return [line for line in lines if CLOSING.match(line.strip())]


def run_leg(name: str, alone: bool) -> tuple[int, float]:
    log = ROOT / "build" / "ci" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    script = ["bash", str(ROOT / ".ci" / "legs" / f"{name}.sh")]
    with log.open("wb") as file:
        if alone:
            process = subprocess.Popen(script, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for line in process.stdout:
                file.write(line)
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            code = process.wait()
        else:
            code = subprocess.run(script, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT).returncode
    return code, time.monotonic() - started


def report_failure(name: str) -> None:
    text = (ROOT / "build" / "ci" / f"{name}.log").read_text(errors="replace")
    lines = text.splitlines()
    print(f"---- {name} failed; the end of build/ci/{name}.log:")
    print("\n".join(lines[-150:]))
    print(f"---- again, alone: make test LEG={name}")


def span(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def expand(words: list[str]) -> list[str]:
    names = []
    for word in words or list(LEGS):
        names += SUBSETS.get(word) or [word]
    unknown = [name for name in names if name not in LEGS and name not in SUBSETS]
    if unknown:
        sys.exit(f"error: no leg named {', '.join(unknown)}; 'make test LEG=list' names them")
    return names


def main() -> int:
    words = sys.argv[1:]
    if words == ["list"]:
        print("\n".join(f"{name:10} {what}" for name, what in LEGS.items()))
        return 0
    names = expand(words)
    started = time.monotonic()
    if subprocess.run([str(ROOT / ".ci" / "setup.sh"), "all"], cwd=ROOT).returncode:
        return 1
    took = [("setup", time.monotonic() - started, "ok")]
    closing, failed = [], []
    for name in names:
        print(f"[{span(time.monotonic() - started)}] {name}: {LEGS.get(name, 'the quick part')}", flush=True)
        code, seconds = run_leg(name, alone=len(names) == 1)
        took.append((name, seconds, "ok" if code == 0 else "FAILED"))
        closing += [f"{line}" for line in closing_lines(ROOT / "build" / "ci" / f"{name}.log")]
        if code:
            failed.append(name)
            if len(names) > 1:
                report_failure(name)
    print("\nwhere the time went")
    for name, seconds, state in took:
        print(f"  {span(seconds):>6}  {name:12} {state}")
    print(f"  {span(time.monotonic() - started):>6}  in all")
    if failed:
        print(f"failed: {', '.join(failed)}")
    # ctest and pytest close their own output; their lines go last, where a reader looks for them.
    closing.sort(key=lambda line: not line.startswith(("fuzz:", "checks:", "tidy:", "headers:")))
    closing.sort(key=lambda line: line.startswith(("=", "1", "0")) or "%" in line)
    if len(names) > 1:
        print("\n".join(closing))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

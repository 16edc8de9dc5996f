#!/usr/bin/env python3
"""Runs the legs of the tests and says where the time went.

    test.py               every leg but the slow one, in the order below: what is quick and fails often comes first
    test.py checks asan   only those; one leg alone, or a slow one, prints everything as it comes
    test.py list          what there is

A leg is .ci/legs/NAME.sh. Its output goes to build/ci/NAME.log, and to the screen only when it fails. A failed leg does
not stop the others. The last lines of a run are the closing lines of ctest and pytest as they printed them. Legs go one
after another, for each takes all cores.
"""

import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "ci"
LEGS = {
    "checks": "format, layers, sizes, words, links, shellcheck, ruff",
    "release": "clang 19 release build and its tests",
    "headers": "every header compiled alone",
    "pytest": "end to end; formats read by other programs",
    "docs": "the commands of README and guides, run as written",
    "gcc": "gcc 12 build and tests without torch",
    "asan": "address and undefined-behaviour sanitizers; each fuzz harness for 20 s",
    "tsan": "thread sanitizer for what has threads",
}
# Not among those: the whole tree takes clang-tidy longer than all the other checks together. Always read aloud.
SLOW = {
    "tidy": "clang-tidy on what differs from origin/main and has not passed before",
}
QUICK = {
    "release-fast": "clang 19 release build and its quick tests",
    "pytest-fast": "each verb once; what waits for faults, hangs and nodes is left to pytest",
}
# How each runner closes, in the order in which they are repeated at the end.
CLOSING = [
    re.compile(r"(checks|headers|fuzz|tidy): \w.*"),
    re.compile(r"\d+% tests passed, \d+ tests failed out of \d+"),
    re.compile(r"(=+ )?(\d+ (passed|failed|skipped|errors?|deselected|warnings?)(, )?)+ in [\d.]+s.*"),
]


def log_of(name: str) -> pathlib.Path:
    return LOGS / f"{name}.log"


def run_aloud(script: list[str], log: pathlib.Path) -> int:
    """Everything the leg prints goes to the screen as it comes, and to its log."""
    with (
        log.open("wb") as file,
        subprocess.Popen(script, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
    ):
        for line in process.stdout:
            file.write(line)
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
    return process.returncode


def run_quietly(script: list[str], log: pathlib.Path) -> int:
    with log.open("wb") as file:
        return subprocess.run(script, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT).returncode


def show_failure(name: str) -> None:
    lines = log_of(name).read_text(errors="replace").splitlines()
    print(f"---- {name} failed; the end of {log_of(name).relative_to(ROOT)}:")
    print("\n".join(lines[-150:]))
    print(f"---- again, alone: make test LEG={name}", flush=True)


def closing_lines(names: list[str]) -> list[str]:
    found = [[] for _ in CLOSING]
    for name in names:
        for line in log_of(name).read_text(errors="replace").splitlines():
            for kind, pattern in enumerate(CLOSING):
                if pattern.fullmatch(line.strip()):
                    found[kind].append(line.strip())
    return sum(found, [])


def span(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def run_legs(names: list[str]) -> int:
    started = time.monotonic()
    LOGS.mkdir(parents=True, exist_ok=True)
    if subprocess.run([str(ROOT / ".ci" / "setup.sh"), "all"], cwd=ROOT).returncode:
        return 1
    took = {"setup": (time.monotonic() - started, 0)}
    for name in names:
        print(f"{span(time.monotonic() - started):>6}  {name}: {(LEGS | QUICK | SLOW)[name]}", flush=True)
        begun = time.monotonic()
        aloud = len(names) == 1 or name in SLOW
        run = run_aloud if aloud else run_quietly
        code = run(["bash", str(ROOT / ".ci" / "legs" / f"{name}.sh")], log_of(name))
        took[name] = (time.monotonic() - begun, code)
        if code and not aloud:
            show_failure(name)
    print("\nwhere the time went")
    for name, (seconds, code) in took.items():
        print(f"{span(seconds):>6}  {name:12}  {'FAILED' if code else 'ok'}")
    print(f"{span(time.monotonic() - started):>6}  in all\n")
    if len(names) > 1:
        print("\n".join(closing_lines(names)))
    failed = [name for name, (_, code) in took.items() if code]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def main() -> int:
    names = sys.argv[1:] or list(LEGS)
    if names == ["list"]:
        print("\n".join(f"{name:14}{what}" for name, what in (LEGS | SLOW).items()))
        return 0
    unknown = [name for name in names if name not in LEGS | QUICK | SLOW]
    if unknown:
        sys.exit(f"error: no leg named {', '.join(unknown)}; 'make test LEG=list' names them")
    return run_legs(names)


if __name__ == "__main__":
    sys.exit(main())

"""Does a run always end with the exit code and the cause of what struck it?

Each ending in three kinds of worker: executed (sh), forked from Python, forked from C++ (the tests' stepper, which can only
fail by itself with a code; signals come from outside). The rank that is struck is one of two, the other one works on or ends
well before; so a follower is never the cause. Checked are the exit code of `muster run`, and of fault.json the rank and
the cause in words. "stopped by" are ends by SIGTERM and SIGINT of `muster run`, of which there is no fault.

The kernel's OOM killer strikes in a control group of 384 MiB (cgroup v1, root); elsewhere these cases are left out, and that
is said.
"""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from killed_rank import VENV, stepper_programs

LIMIT = 60.0
CODES = (0, 1, 3, 42, 77, 100, 127, 200, 255)
SIGNALS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGKILL,
    signal.SIGUSR1,
    signal.SIGSEGV,
    signal.SIGUSR2,
    signal.SIGPIPE,
    signal.SIGALRM,
    signal.SIGTERM,
)
PYTHON = r"""
import os, signal, subprocess, sys, time
kind, number = sys.argv[1], int(sys.argv[2])
if os.environ["RANK"] == "0":
    time.sleep(0 if kind == "late" else 600)
    sys.exit(0)
if kind == "memory":
    code = "taken = []\nwhile True: taken.append(b'x' * (8 << 20))"
    if number == 0:
        exec(code)
    sys.exit(3 if subprocess.run([sys.executable, "-c", code]).returncode else 0)
if kind == "signal":
    signal.signal(number, signal.SIG_DFL) if number not in (9, 19) else None
    os.kill(os.getpid(), number)
os._exit(number) if kind == "at once" else sys.exit(number)
"""
OF_MEMORY = "; memory ran out on its host, the kernel killed 1 process of the run"
SHELL = (
    'if [ "$RANK" = 0 ]; then exec sleep 600; fi; if [ "$1" = signal ]; then kill -"$2" $$; sleep 600; fi; exit "$2"'
)


@dataclasses.dataclass
class Case:
    name: str
    command: list
    code: int
    cause: str | None  # None: there is no fault
    after: tuple = ()  # signals to `muster run` once the ranks are up
    rank: int | None = 1  # None: both fail, and either may be named
    group: pathlib.Path | None = None  # in which memory is short


def small_group() -> pathlib.Path | None:
    """A control group with little memory."""
    group = pathlib.Path(f"/sys/fs/cgroup/memory/muster-a7-{os.getpid()}")
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(384 << 20))
    except OSError as error:
        print(f"without the OOM killer: {error}", file=sys.stderr)
        return None
    return group


def cases(group: pathlib.Path | None) -> list[Case]:
    python = [pathlib.Path(VENV) / "bin" / "python", "script.py"]
    shell = ["sh", "-c", SHELL, "sh"]
    found = []
    for code in CODES:
        cause = f"ended with exit code {code}" if code else None
        found.append(Case(f"python exits with {code}", [*python, "late" if code == 0 else "exit", code], code, cause))
        if code:
            found.append(Case(f"sh exits with {code}", [*shell, "exit", code], code, cause))
            found.append(Case(f"python leaves at once with {code}", [*python, "at once", code], code, cause))
    for number in SIGNALS:
        cause = f"killed by {number.name}"
        found.append(Case(f"python by {number.name}", [*python, "signal", int(number)], 128 + number, cause))
        found.append(Case(f"sh by {number.name}", [*shell, "signal", int(number)], 128 + number, cause))
    for code in (3, 9):
        words = ["muster-train", "--steps", 50, "--fail-at", 5, "--fail-rank", 1, "--exit", code]
        found.append(Case(f"our library exits with {code}", words, code, f"ended with exit code {code}"))
    for number in (signal.SIGTERM, signal.SIGINT):
        for name, command in (("python", [*python, "exit", 0]), ("sh", ["sleep", 600])):
            found.append(Case(f"{name}, stopped by {number.name}", command, 128 + number, None, (number,)))
    for how, flags in (("forked", []), ("executed", ["-X", "dev"])) if group else ():
        command = [python[0], *flags, python[1], "memory"]
        for who, code, cause in (
            ("itself", 137, "killed by SIGKILL"),
            ("its child", 3, "ended with exit code 3"),
        ):
            words = [*command, 0 if who == "itself" else 1]
            found.append(Case(f"python, {how}: no memory for {who}", words, code, cause + OF_MEMORY, group=group))
    found.append(Case("not executable: refused, and nothing is made", ["./no-program"], 4, None))
    found.append(Case("a #! line of nowhere", ["./bad-interpreter"], 127, "could not be started", rank=None))
    return found


def differences(case: Case, work: pathlib.Path, process: subprocess.Popen) -> list[str]:
    code = process.wait(LIMIT)
    wrong = [] if code == case.code else [f"exit code {code}, not {case.code}"]
    path = work / "run" / "fault.json"
    if case.cause is None:
        return wrong + (["there is a fault"] if path.exists() else [])
    if not path.exists():
        return [*wrong, "no fault"]
    fault = json.loads(path.read_text())
    if not fault["cause"].startswith(case.cause):
        wrong.append(f"cause {fault['cause']!r}, not {case.cause!r}")
    if case.rank is not None and fault["rank"] != case.rank:
        wrong.append(f"rank {fault['rank']}, not {case.rank}")
    return wrong


def until_up(work: pathlib.Path, process: subprocess.Popen) -> None:
    events = work / "run" / "events.jsonl"
    while process.poll() is None and (not events.exists() or events.read_text().count('"worker_started"') < 2):
        try:
            process.wait(0.01)
        except subprocess.TimeoutExpired:
            continue


def try_case(case: Case) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="muster-a7-") as name:
        work = pathlib.Path(name)
        programs = stepper_programs(work / "bin")
        (work / "script.py").write_text(PYTHON)
        (work / "no-program").write_text("x\n")
        (work / "bad-interpreter").write_text("#!/nowhere/sh\n")
        (work / "bad-interpreter").chmod(0o755)
        enter = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', case.group / "cgroup.procs"] if case.group else []
        words = [*enter, programs / "muster", "run", "-n", 2, "--quiet", "--run-dir", work / "run", "--grace", 2]
        words += ["--max-restarts", 0, *(["--preload", "json"] if "python" in case.name else []), "--", *case.command]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([str(w) for w in words], cwd=work, **quiet)
        try:
            if case.after:
                until_up(work, process)
                for number in case.after:
                    process.send_signal(number)
            return differences(case, work, process)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def main() -> int:
    group = small_group()
    wrong, tried = 0, cases(group)
    for case in tried:
        found = try_case(case)
        wrong += len(found) > 0
        print(f"{case.name}: {'; '.join(found) or 'as it should be'}", file=sys.stderr, flush=True)
    if group:
        group.rmdir()
    print(f"RESULT A7.cases.count {len(tried)} count")
    print(f"RESULT A7.wrong.count {wrong} count")
    return 0


os.umask(0o022)
sys.exit(main())

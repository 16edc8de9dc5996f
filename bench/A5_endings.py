"""Is anything left behind, however a run ends? And how long does a large tree of processes take to go?

Twenty-odd kinds of end of `muster run` with two ranks, each of which has left a child that ignores TERM, one in a session of
its own and one whose parent is gone. After each: processes that carry the run's mark, new names in /dev/shm, control
groups of the run. A kind counts when the run ended with the exit code that it should.

tree192  a rank's tree of 192 processes that ignore TERM, in chains and sessions of their own; from the second SIGINT, which
         means at once, until the last of them is gone. Median of five.

No peer: torchrun leaves such children in each of these; its own workers too when it is killed itself.
"""

import dataclasses
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import typing
from types import MappingProxyType

from killed_rank import BUILD, VENV

LIMIT = 60.0
DAEMON = """
import os, pathlib, signal, sys, time
here, then = pathlib.Path(sys.argv[1]), sys.argv[2]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    time.sleep(600)
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
if not then.startswith("ignores "):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
(here / f"up-{os.environ['RANK']}").touch()
while len(list(here.glob("up-*"))) < 2:
    time.sleep(0.01)
exec(then.removeprefix("ignores "))
"""
TREE = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
here, made = pathlib.Path(sys.argv[1]), 1
def grow(depth):
    if depth % 4 == 0:
        os.setsid()
    if depth < 12 and os.fork() == 0:
        grow(depth + 1)
    (here / f"p-{os.getpid()}").touch()
    time.sleep(600)
for chain in range(16):
    if os.fork() == 0:
        grow(1)
(here / f"p-{os.getpid()}").touch()
time.sleep(600)
"""
WAIT = "time.sleep(600)"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def until(condition, what: str):
    deadline = time.monotonic() + LIMIT
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {LIMIT:.0f} s: {what}")
        time.sleep(0.002)
    return value


class Run:
    def __init__(self, work: pathlib.Path, script: str, *words, ranks=2, flags=MappingProxyType({}), env=()):
        self.work, self.folder = work, work / "run"
        (work / "script.py").write_text(script)
        python = pathlib.Path(VENV) / "bin" / "python"
        line = [BUILD / "bin" / "muster", "run", "-n", ranks, "--quiet", "--run-dir", self.folder, "--preload", "none"]
        for flag in ({"--grace": 1, "--max-restarts": 0} | dict(flags)).items():
            line += flag
        line += ["--", python, work / "script.py", work, *words]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([str(w) for w in line], cwd=work, env=os.environ | dict(env), **quiet)

    def up(self, ranks=2):
        until(lambda: len(list(self.work.glob("up-*"))) == ranks or self.process.poll() is not None, "the ranks")

    def event(self, name: str) -> str:
        lines = (self.folder / "events.jsonl").read_text().splitlines()
        return [line for line in lines if f'"event":"{name}"' in line][-1]

    def pid_in(self, name: str) -> int:
        return int(self.event(name).split('"pid":')[1].split(",")[0].rstrip("}"))

    def coordinator(self) -> int:
        try:
            return self.pid_in("coordinator_back")
        except IndexError:
            return self.pid_in("run_started")

    def shim(self) -> int:
        for pid in (self.coordinator(), self.process.pid):
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            for child in children:
                if pathlib.Path(f"/proc/{child}/comm").read_text() == "muster-shim\n":
                    return int(child)
        raise RuntimeError("no shim")

    def signal(self, *numbers: int):
        for number in numbers:
            self.process.send_signal(number)
            time.sleep(0.05)

    def left(self) -> list[str]:
        return [f"process {pid}" for pid in marked(self.folder)] + groups_of(self.folder)


def marked(folder: pathlib.Path) -> list[int]:
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"MUSTER_RUN={folder}\0".encode() in (entry / "environ").read_bytes() + b"\0":
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def groups_of(folder: pathlib.Path) -> list[str]:
    run = (folder / "run.json").read_text().split('"id": "')
    own = f"muster-{run[1].split(chr(34))[0]}" if len(run) > 1 else "muster-none"
    return [os.path.join(path, name) for path, names, _ in os.walk("/sys/fs/cgroup") for name in names if own in name]


@dataclasses.dataclass
class Kind:
    name: str
    code: int | None  # None: whatever it is
    then: str = WAIT
    act: typing.Callable[[Run], None] = lambda run: None
    flags: dict = dataclasses.field(default_factory=dict)


def kill_lives(run: Run):
    for count in range(4):
        os.kill(run.coordinator(), signal.SIGKILL)
        if count < 3:
            before = count
            until(
                lambda b=before: run.folder.joinpath("events.jsonl").read_text().count("coordinator_back") > b,
                "another",
            )


def shim_killed(run: Run):
    os.kill(run.shim(), signal.SIGKILL)


def both_killed(run: Run):
    coordinator = run.coordinator()
    os.kill(coordinator, signal.SIGSTOP)
    run.process.kill()
    os.kill(coordinator, signal.SIGKILL)


def shim_stopped(run: Run):
    os.kill(run.shim(), signal.SIGSTOP)
    run.signal(signal.SIGINT, signal.SIGINT)


def folder_removed(run: Run):
    subprocess.run(["mv", run.folder, run.work / "moved"], check=True)
    run.signal(signal.SIGTERM)
    run.process.wait(LIMIT)
    subprocess.run(["mv", run.work / "moved", run.folder], check=True)


OTHER = "time.sleep(600) if os.environ['RANK'] == '1' else "
KINDS = [
    Kind("every rank ends well", 0, "sys.exit(0)"),
    Kind("a rank fails", 42, OTHER + "sys.exit(42)"),
    Kind("a rank does not understand its command line", 2, OTHER + "sys.exit(2)"),
    Kind("an exception", 1, OTHER + "{}['x']"),
    Kind("a rank crashes", 128 + 11, OTHER + "os.kill(os.getpid(), 11)"),
    Kind("a rank aborts", 128 + 6, OTHER + "os.abort()"),
    Kind("a rank is killed", 128 + 9, OTHER + "os.kill(os.getpid(), 9)"),
    Kind("a rank ends by TERM", 128 + 15, OTHER + "os.kill(os.getpid(), 15)"),
    Kind("a rank that ignores TERM", 3, "ignores " + OTHER + "sys.exit(3)"),
    Kind("no restart is left", 93, OTHER + "sys.exit(7)", flags={"--max-restarts": 1}),
    Kind("SIGINT", 130, act=lambda run: run.signal(signal.SIGINT)),
    Kind("SIGINT twice", 130, "ignores " + WAIT, lambda run: run.signal(signal.SIGINT, signal.SIGINT)),
    Kind("SIGTERM", 143, act=lambda run: run.signal(signal.SIGTERM)),
    Kind("SIGHUP", 129, act=lambda run: run.signal(signal.SIGHUP)),
    Kind("SIGQUIT", 131, act=lambda run: run.signal(signal.SIGQUIT)),
    Kind("TERM and HUP at once", None, act=lambda run: run.signal(signal.SIGTERM, signal.SIGHUP)),
    Kind("muster run is killed", -9, act=lambda run: run.process.kill()),
    Kind("the coordinator is killed four times", None, act=kill_lives),
    Kind("both are killed", -9, act=both_killed),
    Kind("the shim is killed", 128 + 9, act=shim_killed),
    Kind("the shim is stopped, SIGINT twice", 130, act=shim_stopped),
    Kind("the run folder is moved away", 143, act=folder_removed),
    Kind("a rank kills the shim", 128 + 9, OTHER + "os.kill(os.getppid(), 9)"),
]


def try_kind(kind: Kind) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="muster-a5-") as name:
        work, shm = pathlib.Path(name), set(os.listdir("/dev/shm"))
        run = Run(work, DAEMON, kind.then, flags=kind.flags)
        try:
            run.up()
            kind.act(run)
            code = run.process.wait(LIMIT)
            # What a shim without a controller takes: TERM, the grace, KILL.
            until(lambda: not run.left() or time.monotonic() > began_at + LIMIT / 2, "the end of all")
        finally:
            if run.process.poll() is None:
                run.process.kill()
                run.process.wait()
        wrong = [] if kind.code in (None, code) else [f"exit code {code}, not {kind.code}"]
        left = run.left() + [f"/dev/shm/{name}" for name in set(os.listdir("/dev/shm")) - shm]
        say(f"{kind.name}: exit code {code}, {left or 'nothing left'}{''.join(', ' + w for w in wrong)}")
        return left if not wrong else [*left, *wrong]


began_at = time.monotonic()


def tree() -> float:
    with tempfile.TemporaryDirectory(prefix="muster-a5-") as name:
        work = pathlib.Path(name)
        run = Run(work, TREE, ranks=1, flags={"--grace": 60})
        until(lambda: len(list(work.glob("p-*"))) == 193, "the tree")
        pids = [int(path.name[2:]) for path in work.glob("p-*")]
        run.process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        began = time.monotonic()
        run.process.send_signal(signal.SIGINT)
        for pid in pids:
            while pathlib.Path(f"/proc/{pid}").exists():
                time.sleep(0.0005)
        took = time.monotonic() - began
        run.process.wait(LIMIT)
        return took


def main() -> int:
    global began_at
    left, tried = [], 0
    for kind in KINDS:
        began_at = time.monotonic()
        found = try_kind(kind)
        tried += not any("exit code" in what for what in found)
        left += found
    times = [tree() for _ in range(5)]
    say("tree of 192: " + ", ".join(f"{t * 1e3:.0f}" for t in times) + " ms")
    print(f"RESULT A5.ends.count {tried} count")
    print(f"RESULT A5.left_behind.count {len(left)} count")
    print(f"RESULT A5.tree192.seconds {statistics.median(times):.4f} s")
    return 0


sys.exit(main())

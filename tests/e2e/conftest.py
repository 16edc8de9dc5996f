"""Starting, hurting and inspecting runs. The processes of a run are found by MUSTER_RUN in their environment."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

SOON = 30.0  # seconds that nothing here should take
READ_ONLY_CGROUPS = """
while read -r _ _ _ _ place rest; do
    case "$rest" in *" - cgroup2 "* | *" - cgroup "*) mount -o remount,bind,ro "$place" || exit 99 ;; esac
done < /proc/self/mountinfo
exec "$@"
"""


def wait_for(condition, what: str, limit: float = SOON):
    """The first true value of `condition()`."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"not within {limit} s: {what}")


def read_lines(path: pathlib.Path) -> list[dict]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def processes_of(folder: pathlib.Path) -> list[int]:
    """Every living process that was started for the run in `folder`."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            marked = f"MUSTER_RUN={folder}\0".encode() in (entry / "environ").read_bytes() + b"\0"
            if marked and ") Z " not in (entry / "stat").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def cgroups_of(run_id: str) -> list[pathlib.Path]:
    # os.walk passes over groups of other programs that go away meanwhile.
    own = f"muster-{run_id}"
    return [
        pathlib.Path(path) / name
        for path, folders, _ in os.walk("/sys/fs/cgroup")
        for name in folders
        if name == own or name.startswith(own + "-")  # agents'
    ]


@dataclasses.dataclass
class Run:
    """A `muster run` that was started and may be over."""

    process: subprocess.Popen
    folder: pathlib.Path
    out: str = ""
    err: str = ""

    def events(self, name: str | None = None) -> list[dict]:
        events = read_lines(self.folder / "events.jsonl")
        return [event for event in events if name in (None, event["event"])]

    def wait_event(self, name: str, count: int = 1, **fields) -> dict:
        def matching():
            matches = [e for e in self.events(name) if all(e.get(k) == v for k, v in fields.items())]
            return matches[count - 1 :]

        return wait_for(matching, f"event {name} {fields}")[0]

    def steps(self, rank: int) -> list[dict]:
        return read_lines(self.folder / "steps" / f"rank-{rank}.jsonl")

    def wait_step(self, step: int, rank: int = 0, generation: int = 1):
        wait_for(
            lambda: any(s["step"] >= step and s["gen"] == generation for s in self.steps(rank)[-50:]),
            f"step {step} of rank {rank}",
        )

    def pid(self, rank: int, generation: int = 1) -> int:
        return self.wait_event("worker_started", rank=rank, gen=generation)["pid"]

    def wait(self, condition, what: str, limit: float = SOON):
        return wait_for(condition, what, limit)

    def processes(self) -> list[int]:
        return processes_of(self.folder)

    def coordinator(self) -> int:
        """The process that steers the run: a child of `muster run`."""
        return (self.events("coordinator_back") or [self.wait_event("run_started")])[-1]["pid"]

    def shims(self) -> list[int]:
        """Those that live: children of the process that steers the run, or, of one before it, of `muster run`."""
        found = []
        for parent in (self.coordinator(), self.process.pid):
            with contextlib.suppress(OSError):
                for child in pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
                    name, state = pathlib.Path(f"/proc/{child}/stat").read_text().split("(")[1].split(") ")
                    if name == "muster-shim" and state[0] not in "ZX":
                        found.append(int(child))
        return found

    def shim(self) -> int:
        """The shim of this run."""
        return wait_for(self.shims, "a shim")[0]

    def kill_shim(self) -> int:
        """Kills it alone, and returns once it is dead."""
        pid = self.shim()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: pid not in self.shims(), "the end of the shim")
        return pid

    def zygote(self) -> int:
        """The fork server: a child of the shim."""
        for pid in self.processes():
            if b"\0--zygote\0" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        raise AssertionError("no zygote")

    def freeze(self):
        """Stops the process that steers the run until thaw, and waits until it is stopped."""
        os.kill(self.coordinator(), signal.SIGSTOP)
        stat = pathlib.Path(f"/proc/{self.coordinator()}/stat")
        wait_for(lambda: stat.read_text().rsplit(") ")[-1].startswith("T"), "a stopped coordinator")

    def wait_pending(self, number: int):
        """Until the signal waits for the stopped process that steers the run."""
        status = pathlib.Path(f"/proc/{self.coordinator()}/status")

        def pending() -> bool:
            masks = [int(line.split()[1], 16) for line in status.read_text().splitlines() if line[3:6] == "Pnd"]
            return any(mask >> (number - 1) & 1 for mask in masks)

        wait_for(pending, f"signal {number}, pending")

    def kill_all(self):
        """Kills `muster run` and the process that steers the run, so that nobody is left to end it in order."""
        coordinator = self.coordinator()
        self.freeze()
        self.process.kill()
        os.kill(coordinator, signal.SIGKILL)

    def thaw(self):
        os.kill(self.coordinator(), signal.SIGCONT)

    def kill(self, rank: int, generation: int = 1, number: int = signal.SIGKILL):
        os.kill(self.pid(rank, generation), number)

    def end(self, limit: float = SOON) -> int:
        self.out, self.err = self.process.communicate(timeout=limit)
        return self.process.returncode

    def log_exists(self, rank: int, generation: int = 1, stream: str = "stdout") -> bool:
        return (self.folder / "logs" / f"rank-{rank}" / f"gen-{generation}.{stream}.log").exists()

    def log(self, rank: int, generation: int = 1, stream: str = "stdout") -> bytes:
        return (self.folder / "logs" / f"rank-{rank}" / f"gen-{generation}.{stream}.log").read_bytes()

    def result(self) -> dict:
        return json.loads((self.folder / "result.json").read_text())

    def fault(self) -> dict:
        return json.loads((self.folder / "fault.json").read_text())

    def assert_nothing_left(self, limit: float = SOON):
        wait_for(lambda: not processes_of(self.folder), f"no process: {processes_of(self.folder)}", limit)
        facts = self.folder / "run.json"
        if facts.exists():
            run_id = json.loads(facts.read_text())["id"]
            wait_for(lambda: not cgroups_of(run_id), f"no cgroup: {cgroups_of(run_id)}", limit)
        # Other programs of the machine use /dev/shm too; ours would carry our name.
        assert not [name for name in os.listdir("/dev/shm") if "muster" in name]


@pytest.fixture
def bin_with_stepper(programs, build, tmp_path) -> pathlib.Path:
    """A folder with muster, muster-shim and muster-stacks, and the stepper under the trainer's name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for source, name in [
        (programs / "muster", "muster"),
        (programs / "muster-shim", "muster-shim"),
        (programs / "muster-stacks", "muster-stacks"),
        (build / "tests" / "stepper", "muster-train"),
    ]:
        shutil.copy2(source, folder / name)
    return folder


def as_from_a_terminal(ignored, more=None):
    """For a child: no signal is ignored but those, whatever started the tests (nohup, a shell's background) ignores."""

    def prepare():
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        if more:
            more()

    return prepare


@pytest.fixture
def start(bin_with_stepper, tmp_path):
    """start(CMD…, ranks=2, flags=[…]) → Run. What is alive at the end of the test is killed.

    `prefix` are the words of a program that execs the rest, `prepare` is called in the child before it is executed,
    `console` is a descriptor that stdout and stderr go to instead of `Run.out` and `Run.err`, `binaries` the folder of
    another muster, without the stepper in the trainer's place, `job` a job file instead of CMD.
    """
    runs = []

    def begin(
        *command,
        ranks=2,
        flags=(),
        folder=None,
        ignored=(),
        prefix=(),
        prepare=None,
        console=subprocess.PIPE,
        binaries=None,
        job=None,
        **environment,
    ) -> Run:
        folder = folder or tmp_path / f"run-{len(runs)}"
        words = ["run", "-n", ranks, "--run-dir", folder, *flags, *([job] if job else ["--", *command])]
        process = subprocess.Popen(
            [*prefix, str((binaries or bin_with_stepper) / "muster"), *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            text=True,
            errors="replace",
            cwd=tmp_path,
            env=os.environ | environment,
            preexec_fn=as_from_a_terminal(ignored, prepare),
        )
        run = Run(process, folder)
        runs.append(run)
        return run

    yield begin
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
            run.process.communicate()
        for pid in processes_of(run.folder):
            with contextlib.suppress(ProcessLookupError):  # it may end by itself meanwhile
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def start_without_cgroups(start):
    """As `start`, where no control group can be made, as in most containers."""

    def begin(*command, **options):
        if os.geteuid() != 0:
            pytest.skip("only root can make its cgroups read-only for a test")
        return start(*command, prefix=["unshare", "--mount", "sh", "-c", READ_ONLY_CGROUPS, "sh"], **options)

    return begin


@pytest.fixture
def wait_until():
    return wait_for


@pytest.fixture
def python() -> str:
    return sys.executable


@pytest.fixture
def torch_python(root) -> str:
    """The interpreter of .venv, which has torch."""
    for folder in (os.environ.get("MUSTER_VENV"), root / ".venv"):
        python = pathlib.Path(folder or "/nowhere") / "bin" / "python"
        if python.exists():
            return str(python)
    pytest.fail("no .venv with torch: make setup")


@pytest.fixture
def script(tmp_path):
    """Writes a Python script and returns its path."""

    def write(text: str, name: str = "script.py") -> pathlib.Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write

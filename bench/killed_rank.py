"""Starts a job under `muster run` or torchrun, kills one rank, and times how long until every rank stepped again.

For S1 and A1. The clock runs from before kill(2) to the end of the first optimizer step after it on every rank, read
from the workers' own clocks. A program on our library is read from its run folder; a Python script writes
"attempt step time" lines to DIR/rank-R.steps (peers/*_ddp.py), under `muster run` too, where it knows nothing of Muster.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import typing

BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", "build/release")).resolve()
VENV = pathlib.Path(os.environ.get("MUSTER_VENV", ".venv")).absolute()
PEERS = pathlib.Path(__file__).resolve().parent / "peers"
IMAGES = pathlib.Path("/usr/share/datasets/fashion-mnist")
START_LIMIT = 180.0
GIVE_UP = 60.0  # seconds without a step of every rank: it did not come back

Steps = list[tuple[int, int, int]]  # (generation or attempt, step, end in ns) of every finished step


class Job(typing.NamedTuple):
    """A job that runs: its launcher, and how to look into it."""

    process: subprocess.Popen
    steps: typing.Callable[[int], Steps]
    pid_of: typing.Callable[[int], int]


def run_folder_steps(folder: pathlib.Path, rank: int) -> Steps:
    path = folder / "steps" / f"rank-{rank}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines if line.endswith("}")]
    return [(r["gen"], r["step"], r["begin_ns"] + 1000 * r["total_us"]) for r in records]


def script_steps(folder: pathlib.Path, rank: int) -> Steps:
    path = folder / f"rank-{rank}.steps"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [tuple(map(int, line.split())) for line in lines]


def run_events(folder: pathlib.Path, *names: str) -> list[dict]:
    """Those of a run so far; of these names, or all."""
    lines = (folder / "events.jsonl").read_text().rpartition("\n")[0].splitlines()
    return [event for event in map(json.loads, lines) if not names or event["event"] in names]


def coordinator_of(folder: pathlib.Path) -> int:
    return run_events(folder, "run_started", "coordinator_back")[-1]["pid"]


def muster_pid(folder: pathlib.Path, rank: int) -> int:
    """Of its first start."""
    for event in run_events(folder, "worker_started"):
        if event["rank"] == rank:
            return event["pid"]
    raise RuntimeError("no such worker")


def torchrun_pid(process: subprocess.Popen, rank: int) -> int:
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        if f"\0RANK={rank}\0".encode() in pathlib.Path(f"/proc/{child}/environ").read_bytes():
            return int(child)
    raise RuntimeError("no such worker")


def pack_images(work: pathlib.Path) -> pathlib.Path:
    """The trainer's data, in `work`."""
    command = [BUILD / "bin" / "muster", "data", "pack", IMAGES, work / "fashion"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{IMAGES} cannot be packed, no result: {done.stderr}")
    return work / "fashion"


def stepper_programs(folder: pathlib.Path) -> pathlib.Path:
    """`muster` in `folder`, with the tests' stepper beside it under the trainer's name, so that it is forked."""
    folder.mkdir()
    names = {"bin/muster": "muster", "bin/muster-shim": "muster-shim", "tests/stepper": "muster-train"}
    for source, name in names.items():
        shutil.copy2(BUILD / source, folder / name)
    return folder


def start(words: list, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [str(word) for word in words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"TORCH_CPP_LOG_LEVEL": "ERROR"} | environment,
    )


def start_trainer(folder: pathlib.Path, ranks: int, command: list) -> Job:
    """A program on our library under `muster run`."""
    run = folder / "run"
    words = [BUILD / "bin" / "muster", "run", "-n", ranks, "--quiet", "--run-dir", run, "--max-restarts", 3, "--"]
    process = start([*words, *command])
    return Job(process, lambda rank: run_folder_steps(run, rank), lambda rank: muster_pid(run, rank))


def start_script(folder: pathlib.Path, ranks: int, script: pathlib.Path, arguments: list) -> Job:
    """An unchanged Python script under `muster run`."""
    run = folder / "run"
    words = [BUILD / "bin" / "muster", "run", "-n", ranks, "--quiet", "--run-dir", run, "--max-restarts", 3, "--"]
    process = start([*words, VENV / "bin" / "python", script, *arguments], OMP_NUM_THREADS="1")
    return Job(process, lambda rank: script_steps(folder, rank), lambda rank: muster_pid(run, rank))


def start_torchrun(folder: pathlib.Path, ranks: int, script: pathlib.Path, arguments: list, unshared: bool) -> Job:
    """The same under torchrun, which looks for dead workers ten times a second."""
    words = [VENV / "bin" / "python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]
    words += ["--max-restarts", 3, "--monitor-interval", 0.1, script, *arguments]
    store = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1" if unshared else "0"}
    process = start(words, OMP_NUM_THREADS="1", **store)
    return Job(process, lambda rank: script_steps(folder, rank), lambda rank: torchrun_pid(process, rank))


def wait_until_all_step(job: Job, ranks: int, count: int) -> None:
    deadline = time.monotonic() + START_LIMIT
    waiting = set(range(ranks))
    while waiting:
        waiting = {rank for rank in waiting if len(job.steps(rank)) < count}
        if waiting and (time.monotonic() > deadline or job.process.poll() is not None):
            raise RuntimeError(f"the job did not get going: ranks {sorted(waiting)} without {count} steps")
        time.sleep(0.02)


def first_steps_after(job: Job, ranks: int, began: int) -> int | None:
    """When the last rank ended its first step of a later attempt; nothing while one has none."""
    attempt, ends = job.steps(0)[0][0], []
    for rank in range(ranks):
        later = [end for number, _, end in job.steps(rank) if number > attempt and end > began]
        if not later:
            return None
        ends.append(min(later))
    return max(ends)


def time_recovery(job: Job, ranks: int, victim: int, warm: int) -> float | None:
    """Kills `victim` once every rank has done `warm` steps. Seconds, or nothing when the job did not come back."""
    wait_until_all_step(job, ranks, warm)
    pid = job.pid_of(victim)
    began = time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + GIVE_UP
    while time.monotonic() < deadline:
        end = first_steps_after(job, ranks, began)
        if end is not None:
            return (end - began) / 1e9
        if job.process.poll() is not None:
            return None
        time.sleep(0.005 if ranks < 8 else 0.05)
    return None


def stop(job: Job) -> None:
    job.process.send_signal(signal.SIGINT)
    try:
        job.process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        job.process.kill()
        job.process.wait()


def recovery_of(job: Job, ranks: int, victim: int, warm: int) -> float | None:
    try:
        return time_recovery(job, ranks, victim, warm)
    finally:
        stop(job)


def shown(times: list[float | None]) -> str:
    return ", ".join("did not come back" if t is None else f"{t:.3f} s" for t in times) or "not tried"

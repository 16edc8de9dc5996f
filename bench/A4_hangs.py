"""Is every rank that hangs found in time and rightly named, and nobody else?

A job of 4 ranks on our library (the stepper: 5 ms steps, a checkpoint every 20) runs under `muster run`; this program, not
the detector, injects by turns one of 5 kinds of hang into a drawn rank, 50 times: SIGSTOP, a deadlock, an endless loop, a
read that never ends, a collective that is left out. Before each, a healthy pause of 1.5 s in another rank, by turns in its
step and by SIGSTOP and SIGCONT. Then a job whose checkpoints take 10 times a step is watched for A4_QUIET_S (120) seconds.

found     a `hang` or `fault` event that follows the injection within 60 s
latest    the slowest, over max(2 s, 3 × the 99th percentile of that job's steps)
false     a `hang` or `fault` event that no injection explains
A4_HANGS (50), A4_SEED.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from killed_rank import run_events, stepper_programs

HANGS = int(os.environ.get("A4_HANGS", "50"))
QUIET_S = float(os.environ.get("A4_QUIET_S", "120"))
SEED = int(os.environ.get("A4_SEED", str(random.SystemRandom().randrange(10**6))))
RANKS = 4
KINDS = ("SIGSTOP", "deadlock", "loop", "read", "skip")
WARM_STEPS = 40  # of a generation, before something is done to it
LIMIT = 60.0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Job:
    """A run of the stepper, under the trainer's name so that it is forked."""

    def __init__(self, work: pathlib.Path, *flags: str):
        self.folder, self.inject_into = work / "run", work / "hangs"
        self.inject_into.mkdir(parents=True)
        programs = stepper_programs(work / "bin")
        words = [programs / "muster", "run", "-n", RANKS, "--quiet", "--run-dir", self.folder, "--max-restarts", 10000]
        words += ["--", "muster-train", "--steps", 10**9, "--hang-dir", self.inject_into, *flags]
        self.process = subprocess.Popen(
            [str(word) for word in words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        self.seen = 0  # bytes of events.jsonl

    def new_events(self) -> list[dict]:
        path = self.folder / "events.jsonl"
        if not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(self.seen)
            whole = file.read().rpartition(b"\n")[0]
        self.seen += len(whole) + 1 if whole else 0
        return [json.loads(line) for line in whole.splitlines()]

    def steps(self, rank: int) -> list[dict]:
        with (self.folder / "steps" / f"rank-{rank}.jsonl").open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 40_000))
            lines = file.read().split(b"\n")[1:-1]
        return [json.loads(line) for line in lines]

    def is_calm(self, generation: int) -> bool:
        """It is the newest generation, and no fault of it was seen."""
        last = run_events(self.folder, "hang", "fault", "generation_started")[-1]
        return last["event"] == "generation_started" and last["gen"] == generation

    def wait_until_warm(self) -> None:
        """Every rank did WARM_STEPS of the newest generation, and nothing has happened to it yet."""
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            time.sleep(0.05)
            paths = [self.folder / "steps" / f"rank-{rank}.jsonl" for rank in range(RANKS)]
            if not all(path.exists() for path in paths):
                continue
            newest = [self.steps(rank)[-WARM_STEPS:] for rank in range(RANKS)]
            generations = {record["gen"] for records in newest for record in records}
            whole = all(len(records) == WARM_STEPS for records in newest)
            if whole and len(generations) == 1 and self.is_calm(generations.pop()):
                return
        raise RuntimeError("the job does not step")

    def pid(self, rank: int) -> int:
        return [event["pid"] for event in run_events(self.folder, "worker_started") if event["rank"] == rank][-1]

    def inject(self, rank: int, kind: str) -> int:
        """When, on CLOCK_MONOTONIC."""
        now = time.monotonic_ns()
        if kind == "SIGSTOP":
            os.kill(self.pid(rank), signal.SIGSTOP)
        else:
            (self.inject_into / "part").write_text(kind)
            (self.inject_into / "part").rename(self.inject_into / f"rank-{rank}")
        return now

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


def alarms(job: Job) -> list[dict]:
    return [event for event in job.new_events() if event["event"] in ("hang", "fault")]


def first_alarm(job: Job) -> dict | None:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        found = alarms(job)
        if found:
            return found[0]
        time.sleep(0.02)
    return None


def pause(job: Job, rank: int, by_signal: bool) -> None:
    if not by_signal:
        job.inject(rank, "pause")
        time.sleep(1.6)
        return
    pid = job.pid(rank)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(pid, signal.SIGCONT)


def p99(job: Job) -> float:
    times = sorted(record["total_us"] for rank in range(RANKS) for record in job.steps(rank)[-64:])
    return times[int(len(times) * 0.99)] / 1e6


def measure(job: Job, rng: random.Random) -> dict[str, float]:
    count = {"found": 0, "right": 0, "latest": 0.0, "pauses": 0, "false": 0}
    for number in range(HANGS):
        job.wait_until_warm()
        alarms(job)  # of the recovery before
        pause(job, rng.randrange(RANKS), by_signal=number % 2 == 1)
        job.wait_until_warm()
        late = alarms(job)
        count["pauses"] += 1
        count["false"] += len(late)
        kind, rank = KINDS[number % len(KINDS)], rng.randrange(RANKS)
        limit = max(2.0, 3 * p99(job))
        when = job.inject(rank, kind)
        alarm = first_alarm(job)
        took = (alarm["t_ns"] - when) / 1e9 if alarm else float("inf")
        count["found"] += alarm is not None
        count["right"] += alarm is not None and alarm["rank"] == rank
        count["latest"] = max(count["latest"], took / limit)
        what = (alarm or {}).get("what") or (alarm or {}).get("cause")
        say(
            f"{number + 1:3} {kind:8} rank {rank}: blamed {alarm and alarm['rank']} after {took:.3f} s ({what}) {late or ''}"
        )
    return count


def watch_quietly(job: Job) -> int:
    job.wait_until_warm()
    alarms(job)
    deadline = time.monotonic() + QUIET_S
    while time.monotonic() < deadline:
        time.sleep(1)
    return len(alarms(job))


def main() -> int:
    say(f"seed {SEED}")
    with tempfile.TemporaryDirectory(prefix="muster-a4-") as folder:
        job = Job(pathlib.Path(folder) / "hurt", "--step-ms", "5", "--every", "20")
        try:
            count = measure(job, random.Random(SEED))
        finally:
            job.stop()
        # A save of the stepper sleeps as long as ten steps.
        job = Job(pathlib.Path(folder) / "quiet", "--step-ms", "50", "--every", "10", "--save-ms", "500")
        try:
            count["false"] += watch_quietly(job)
        finally:
            job.stop()
    print(f"RESULT A4.found.count {count['found']} count")
    print(f"RESULT A4.right_rank.count {count['right']} count")
    print(f"RESULT A4.latest.fraction {count['latest']:.3f} x")
    print(f"RESULT A4.healthy_pauses.count {count['pauses']} count")
    print(f"RESULT A4.false_alarms.count {count['false']} count")
    return 0


sys.exit(main())

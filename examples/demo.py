"""Muster in a few minutes: pack real images, train two ranks, kill one, and compare with a run that nobody disturbed.

The rank is killed twice, in two runs: once the other rank keeps what it has in memory and no finished step is done again, once
both start again from the newest checkpoint, as they would had both died, and the steps behind it are replayed.

Each step is printed as the command that a user would type, then run. Whatever the demo claims it reads from the run
folders and checkpoints, never from what the programs say about themselves on the screen, and it exits with 1 if one
claim is not true.

    make demo                 installs, builds and runs this
    make demo SEED=7          another rank, another step

Reads docs/formats/run-folder.md; recovery, lost and goodput are defined in docs/formats/report.md. Standard library only.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

RANKS = 2
JOB = pathlib.Path("examples/vit-fashion.yaml")
IMAGES = pathlib.Path("/usr/share/datasets/fashion-mnist")
OUT = pathlib.Path("demo")
MARK = OUT / ".made-by-demo"
DATA, DISTURBED, RESTARTED, UNDISTURBED = (OUT / name for name in ("fashion", "disturbed", "restarted", "undisturbed"))
ACCURACY_FLOOR = 0.82
RUN_TIME = "about 35 s on two quiet cores"
# Runs whose times differ by this much more than what a fault cost were slowed down by something else.
NOISE_S = 3.0
WORDS = """   The words of what follows:
     [0 2]       in front of a line: rank 0 printed it, a process started in generation 2; the trainer prints on rank 0 only
     generation  1 at the start, one more with each recovery; a rank that is kept goes on into the next one
     recovery    from the death until every rank begins a step again; `muster run` counts it as a restart. It is
       detect    until the death was seen and it was decided what to do,
       stop      until the other rank stands at the end of a step, or is gone,
       start     until every rank begins a step
     replay      until every step that had been finished is finished again
     lost        recovery and replay; what had been done of the step in flight comes on top
     goodput     the share of rank 0's time that went into steps run for the first time"""


class ClaimFailed(Exception):
    """Something that the demo says is not so."""


def say(text: str = "") -> None:
    print(text, flush=True)


def heading(number: int, text: str) -> None:
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    say(f"\n{bold}{number}. {text}{plain}")


def claim(true: bool, text: str) -> None:
    """Says `text` if it is true; the demo fails otherwise."""
    if not true:
        raise ClaimFailed(text)
    say(f"   ✓ {text}")


def show(command: list[str]) -> None:
    say(f"$ {shlex.join(command)}")


def run(command: list[str], capture: bool = False) -> str:
    """Prints the command and runs it with its output on our screen; returns its stdout when captured."""
    show(command)
    done = subprocess.run(command, stdout=subprocess.PIPE if capture else None, text=True)
    if capture:
        say(done.stdout.rstrip())
    if done.returncode:
        raise ClaimFailed(f"'{shlex.join(command)}' ended with {done.returncode}")
    return done.stdout or ""


def read_lines(path: pathlib.Path) -> list[dict]:
    """The whole records of an append-only file; a torn last line is not there yet."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def read_last_line(path: pathlib.Path) -> dict | None:
    """The newest whole record; cheap, so that watching does not take the cores from the run."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        whole = file.read().split(b"\n")[:-1]
        return json.loads(whole[-1]) if whole and whole[-1].startswith(b"{") else None
    return None


@dataclasses.dataclass(frozen=True)
class Fault:
    """Whom to kill, and after which finished step."""

    rank: int
    step: int


def draw_fault(seed: int, steps: int, every: int) -> Fault:
    """A rank and a step out of the middle of the run and of a checkpoint interval, so that steps must be replayed."""
    draw = random.Random(seed)
    interval = draw.randrange(steps // every // 3, 2 * steps // every // 3)
    within = draw.randrange(every // 3, 4 * every // 5)
    return Fault(rank=draw.randrange(RANKS), step=interval * every + within)


class Killer(threading.Thread):
    """Waits until the drawn rank has finished the drawn step, then sends it SIGKILL, once."""

    def __init__(self, folder: pathlib.Path, fault: Fault) -> None:
        super().__init__(name="killer", daemon=True)
        self.folder, self.fault = folder, fault
        self.give_up = threading.Event()
        self.struck_pid: int | None = None

    def run(self) -> None:
        while not self.give_up.wait(0.01):
            pid = self._pid()
            if pid is None or self._last_step() < self.fault.step:
                continue
            # A pidfd names this process for good: the number may be someone else's by now.
            with contextlib.suppress(ProcessLookupError):
                handle = os.pidfd_open(pid)
                try:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                finally:
                    os.close(handle)
                self.struck_pid = pid
                say(
                    f"   demo: SIGKILL sent to rank {self.fault.rank}, pid {pid}; its last step on record is {self._last_step()}"
                )
            return

    def _pid(self) -> int | None:
        for event in read_lines(self.folder / "events.jsonl"):
            if event["event"] == "worker_started" and event["rank"] == self.fault.rank:
                return event["pid"]
        return None

    def _last_step(self) -> int:
        last = read_last_line(self.folder / "steps" / f"rank-{self.fault.rank}.jsonl")
        return last["step"] if last else 0


@dataclasses.dataclass
class Run:
    """What a run folder says about a finished run."""

    folder: pathlib.Path
    events: list[dict]
    steps: list[list[dict]]  # by rank
    evals: list[dict]
    result: dict

    @classmethod
    def read(cls, folder: pathlib.Path) -> "Run":
        return cls(
            folder=folder,
            events=read_lines(folder / "events.jsonl"),
            steps=[read_lines(folder / "steps" / f"rank-{rank}.jsonl") for rank in range(RANKS)],
            evals=read_lines(folder / "eval.jsonl"),
            result=json.loads((folder / "result.json").read_text()),
        )

    def named(self, event: str) -> list[dict]:
        return [entry for entry in self.events if entry["event"] == event]

    def generations(self) -> list[int]:
        return [entry["gen"] for entry in self.named("generation_started")]

    def replayed(self, rank: int) -> list[int]:
        """Steps that this rank finished in more than one generation."""
        seen: dict[int, set[int]] = {}
        for record in self.steps[rank]:
            seen.setdefault(record["step"], set()).add(record["gen"])
        return sorted(step for step, generations in seen.items() if len(generations) > 1)

    def losses(self, rank: int) -> dict[int, float]:
        """Loss by step as this rank last wrote it down."""
        return {record["step"]: record["loss"] for record in self.steps[rank]}

    def wall_seconds(self) -> float:
        return (self.events[-1]["t_ns"] - self.events[0]["t_ns"]) / 1e9


def prepare() -> None:
    if OUT.exists() and not MARK.exists():
        sys.exit(f"error: {OUT}/ exists and was not made by the demo\n  nothing was changed; move it away")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    MARK.touch()


def pack_images() -> None:
    heading(1, "Pack 70,000 images (about 5 s on two quiet cores)")
    run(["muster", "data", "pack", str(IMAGES), str(DATA)])
    run(["muster", "data", "verify", str(DATA)])
    run(["muster", "data", "ls", str(DATA)])


def read_plan() -> tuple[int, int]:
    """Steps of the job and steps between checkpoints, as the job file has them."""
    done = subprocess.run(["muster", "explain", str(JOB), "--json"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise ClaimFailed(f"{JOB} is a job file")
    spec = json.loads(done.stdout)["spec"]
    words = spec["command"]
    return int(words[words.index("--steps") + 1]), int(spec["checkpoint"]["every"])


def train(folder: pathlib.Path, *flags: str) -> Run:
    run(["muster", "run", str(JOB), "--run-dir", str(folder), *flags])
    return Run.read(folder)


def train_with_a_fault(folder: pathlib.Path, fault: Fault, *flags: str) -> Run:
    killer = Killer(folder, fault)
    killer.start()
    try:
        finished = train(folder, *flags)
    finally:
        killer.give_up.set()
        killer.join(timeout=5)
    check_fault(finished, fault, killer.struck_pid)
    return finished


def check_fault(finished: Run, fault: Fault, struck_pid: int | None) -> None:
    claim(struck_pid is not None, "the fault was injected")
    exits = [e for e in finished.named("worker_exited") if e["pid"] == struck_pid]
    killed = len(exits) == 1 and exits[0].get("signal") in (9, "SIGKILL") and exits[0]["cause"] == "fault"
    claim(killed, f"the run folder blames rank {fault.rank} (pid {struck_pid}), killed by SIGKILL")
    # result.json counts a recovery of either kind as a restart.
    once = len(finished.named("fault")) == 1 and len(finished.generations()) == 2
    claim(once and finished.result["restarts"] == 1, "exactly one fault and one recovery")


def check_kept(finished: Run, fault: Fault) -> None:
    started = [(e["rank"], e["gen"]) for e in finished.named("worker_started")]
    claim(started[RANKS:] == [(fault.rank, 2)], f"only rank {fault.rank} was started again; the other kept its process")
    claim(not any(map(finished.replayed, range(RANKS))), "no finished step was done again")


def check_replayed(finished: Run) -> None:
    replayed = [finished.replayed(rank) for rank in range(RANKS)]
    claim(all(replayed), f"steps {replayed[0][0]} to {replayed[0][-1]} were replayed from the checkpoint before them")


def check_finished(finished: Run, steps: int) -> None:
    result = finished.result
    claim(result["state"] == "SUCCEEDED" and result["exit_code"] == 0, f"{finished.folder} succeeded")
    whole = all({record["step"] for record in rank} == set(range(1, steps + 1)) for rank in finished.steps)
    claim(whole, f"every rank finished each of the {steps} steps")


def compare(disturbed: list[Run], calm: Run) -> None:
    expected = calm.losses(0)
    runs = (*disturbed, calm)
    same = all(run.losses(rank) == expected for run in runs for rank in range(RANKS))
    text = f"at each of {len(expected)} steps the loss is one number: in the files of the {RANKS} ranks of all {len(runs)} runs"
    claim(same, text)
    command = ["muster", "ckpt", "digest", *(str(run.folder) for run in runs)]
    digests = run(command, capture=True)
    equal = "bitwise equal" in digests and "not bitwise equal" not in digests
    claim(equal, "the final weights and the optimizer's state are bitwise equal")


def costs(name: str, hurt: Run) -> str:
    lost = hurt.result["lost"]
    stages = {stage: lost[stage + "_s"] for stage in ("detect", "stop", "start")}
    split = ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in stages.items())
    return (
        f"   {name:<12} {lost['total_s']:6.3f} s lost: recovery {sum(stages.values()):.3f} ({split}), "
        f"replay {lost['replay_s']:.3f}; goodput {hurt.result['goodput']:.1%}"
    )


def explain_times(hurt: list[Run], calm: Run) -> None:
    """Says what else slowed a run down when its time differs from the calm one's by more than its fault cost."""
    odd = [abs(run.wall_seconds() - calm.wall_seconds() - run.result["lost"]["total_s"]) for run in hurt]
    if max(odd) < NOISE_S:
        return
    load = os.getloadavg()[1]
    say(
        f"   (up to {max(odd):.0f} s of the difference are not the faults' but the machine's: load average {load:.1f}\n"
        f"   in the last 5 minutes on {os.cpu_count()} cores, about {RANKS} of it these runs; what a fault cost is below)"
    )


def summarise(disturbed: Run, restarted: Run, calm: Run, report: pathlib.Path) -> None:
    accuracy = disturbed.evals[-1]["accuracy"]
    claim(accuracy >= ACCURACY_FLOOR, f"test accuracy {accuracy:.2%} is at least {ACCURACY_FLOOR:.0%}")
    run(["muster", "report", str(disturbed.folder), "--output", str(report)])
    page = report.read_text(encoding="utf-8")
    loads = any(word in page for word in ('src="http', 'href="http', "@import", "url(http"))
    claim("<svg" in page and not loads, f"{report} is one file that loads nothing from elsewhere")
    say("")
    for run_ in (disturbed, restarted, calm):
        count = run_.result["restarts"]
        say(
            f"   {run_.folder.name:<12} {run_.wall_seconds():6.1f} s, {count} {'recovery' if count == 1 else 'recoveries'}"
        )
    explain_times([disturbed, restarted], calm)
    say(costs("disturbed", disturbed))
    say(costs("restarted", restarted))
    say(f"   accuracy     {accuracy:6.2%} on 10,000 test images")


def demonstrate(seed: int) -> None:
    say("$ export PATH=" + shlex.quote(os.environ["PATH"].split(os.pathsep)[0]) + ":$PATH")
    pack_images()
    steps, every = read_plan()
    fault = draw_fault(seed, steps, every)
    heading(2, f"Train {RANKS} ranks for {steps} steps and lose one on the way ({RUN_TIME})")
    say(WORDS)
    say(
        f"   seed {seed}: rank {fault.rank} gets a SIGKILL as soon as step {fault.step} of it is on record: a step or two later"
    )
    disturbed = train_with_a_fault(DISTURBED, fault)
    check_kept(disturbed, fault)
    check_finished(disturbed, steps)
    heading(
        3,
        f"The same rank dies at about the same step, and everybody starts again from the newest checkpoint ({RUN_TIME})",
    )
    restarted = train_with_a_fault(RESTARTED, fault, "--restart-all")
    check_replayed(restarted)
    check_finished(restarted, steps)
    heading(4, f"The same job, left alone ({RUN_TIME})")
    calm = train(UNDISTURBED)
    check_finished(calm, steps)
    claim(calm.result["restarts"] == 0 and not any(map(calm.replayed, range(RANKS))), "no recovery, no step replayed")
    compare([disturbed, restarted], calm)
    heading(5, "What came of it")
    summarise(disturbed, restarted, calm, OUT / "report.html")


def main() -> int:
    parser = argparse.ArgumentParser(description="Muster in a few minutes.")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    arguments = parser.parse_args()
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    programs = arguments.build.resolve() / "bin"
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    started = time.monotonic()
    prepare()
    try:
        demonstrate(arguments.seed)
    except ClaimFailed as failed:
        say(f"\ndemo: NOT TRUE: {failed}")
        say(f"  what the runs left is in {OUT}/; the same again: make demo SEED={arguments.seed}")
        return 1
    say(f"\ndemo: all true, {time.monotonic() - started:.0f} s; open {OUT}/report.html in a browser")
    return 0


if __name__ == "__main__":
    sys.exit(main())

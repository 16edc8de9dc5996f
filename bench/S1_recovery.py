"""How long does a job stand still when one of its two ranks is killed?

Three arms, interleaved, each sample a fresh job: SIGKILL for one rank once both have done 30 steps; the clock runs from
before kill(2) to the end of the first optimizer step after it on every rank, read from the workers' own clocks.
  ours      muster run -n 2 -- muster-train vit (the recipe's size, on the packed Fashion-MNIST)
  torchrun  the same model in Python: DDP on gloo, AdamW, checkpoint (peers/vit_ddp.py), torchrun's defaults
  unshared  the same with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
torchrun often does not come back with its defaults; what came back is printed, and the better of its medians counts.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", "build/release")).resolve()
VENV = pathlib.Path(os.environ.get("MUSTER_VENV", ".venv")).absolute()
HERE = pathlib.Path(__file__).resolve().parent
IMAGES = pathlib.Path("/usr/share/datasets/fashion-mnist")
SAMPLES = int(os.environ.get("S1_SAMPLES", "5"))
EVERY = 10  # steps between checkpoints, both arms
WARM = 30  # steps of every rank before the kill
GIVE_UP = 60.0  # seconds without a step of both ranks: it did not come back
GIVEN_UP_AFTER = 3  # default torchrun: samples without a recovery before it is left alone


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def wait_for(condition, limit: float):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        value = condition()
        if value is not None:
            return value
        time.sleep(0.005)
    return None


def ours_steps(folder: pathlib.Path, rank: int) -> list[tuple[int, int, int]]:
    """(generation, step, end in ns) of every finished step."""
    path = folder / "steps" / f"rank-{rank}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines if line.endswith("}")]
    return [(r["gen"], r["step"], r["begin_ns"] + 1000 * r["total_us"]) for r in records]


def peer_steps(folder: pathlib.Path, rank: int) -> list[tuple[int, int, int]]:
    path = folder / f"rank-{rank}.steps"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [tuple(map(int, line.split())) for line in lines]


def ours_pid(folder: pathlib.Path, rank: int) -> int:
    for line in (folder / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "worker_started" and event["rank"] == rank:
            return event["pid"]
    raise RuntimeError("no such worker")


def peer_pid(process: subprocess.Popen, rank: int) -> int:
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        if f"\0RANK={rank}\0".encode() in pathlib.Path(f"/proc/{child}/environ").read_bytes():
            return int(child)
    raise RuntimeError("no such worker")


def recovery(process: subprocess.Popen, steps, pid_of, rank: int) -> float | None:
    """Kills `rank` of a running job and returns the seconds until both ranks stepped again."""

    def warm():
        return True if all(len(steps(r)) >= WARM for r in (0, 1)) else None

    if wait_for(warm, 120) is None:
        raise RuntimeError("the job did not get going")
    pid = pid_of(rank)
    began = time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)

    def back():
        firsts = []
        for r in (0, 1):
            later = [end for attempt, _, end in steps(r) if attempt > first_attempt and end > began]
            if not later:
                return None
            firsts.append(min(later))
        return max(firsts)

    first_attempt = steps(0)[0][0]
    deadline = time.monotonic() + GIVE_UP
    while time.monotonic() < deadline:
        end = back()
        if end is not None:
            return (end - began) / 1e9
        if process.poll() is not None:
            return None
        time.sleep(0.005)
    return None


def stop(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def sample_ours(work: pathlib.Path, data: pathlib.Path, rank: int) -> float | None:
    folder = work / "run"
    words = ["run", "-n", "2", "--quiet", "--run-dir", folder, "--max-restarts", "3", "--"]
    words += ["muster-train", "vit", "--data", data, "--mode", "fast", "--steps", "100000"]
    words += ["--checkpoint-every", str(EVERY), "--log-every", "1000"]
    process = subprocess.Popen([BUILD / "bin" / "muster", *words], stderr=subprocess.DEVNULL)
    try:
        return recovery(process, lambda r: ours_steps(folder, r), lambda r: ours_pid(folder, r), rank)
    finally:
        stop(process)


def sample_torchrun(work: pathlib.Path, rank: int, unshared: bool) -> float | None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment.pop("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", None)
    if unshared:
        environment["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    words = [VENV / "bin" / "python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words += ["--max-restarts", "3", "--monitor-interval", "0.1", HERE / "peers" / "vit_ddp.py", work, "100000"]
    process = subprocess.Popen(
        [*words, str(EVERY)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        return recovery(process, lambda r: peer_steps(work, r), lambda r: peer_pid(process, r), rank)
    finally:
        stop(process)


def pack(work: pathlib.Path) -> pathlib.Path:
    done = subprocess.run(
        [BUILD / "bin" / "muster", "data", "pack", IMAGES, work / "fashion"], stdout=subprocess.DEVNULL
    )
    if done.returncode != 0:
        raise RuntimeError(f"cannot pack {IMAGES}: {done.stderr.decode(errors='replace')}")
    return work / "fashion"


def shown(times: list[float | None]) -> str:
    return ", ".join("did not come back" if t is None else f"{t:.3f} s" for t in times) or "not tried"


def measure(work: pathlib.Path) -> dict[str, list[float | None]]:
    data = pack(work)
    times: dict[str, list[float | None]] = {"ours": [], "torchrun": [], "unshared": []}
    for number in range(SAMPLES):
        rank = number % 2
        for arm, found in times.items():
            if arm == "torchrun" and len(found) >= GIVEN_UP_AFTER and not any(found):
                continue
            folder = work / f"{arm}-{number}"
            folder.mkdir()
            if arm == "ours":
                found.append(sample_ours(folder, data, rank))
            else:
                found.append(sample_torchrun(folder, rank, arm == "unshared"))
            say(f"round {number + 1}, rank {rank}, {arm}: {shown(found[-1:])}")
    return times


def median_of(times: list[float | None]) -> float | None:
    """Nothing when fewer than all samples came back: a median over survivors would flatter."""
    return statistics.median(times) if times and len(times) >= min(SAMPLES, 5) and None not in times else None


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="muster-s1-") as folder:
        times = measure(pathlib.Path(folder))
    for arm, found in times.items():
        say(f"{arm:9} {sum(t is not None for t in found)} of {len(found)} came back: {shown(found)}")
    ours = median_of(times["ours"])
    peers = [median for arm in ("torchrun", "unshared") if (median := median_of(times[arm])) is not None]
    if ours is None:
        say("ours did not come back each time: no result")
        return 1
    print(f"RESULT S1.recovery.seconds {ours:.4f} s")
    if not peers:
        say("torchrun did not come back each time in either way: no ratio")
        return 1
    print(f"RESULT S1.torchrun.ratio {min(peers) / ours:.2f} x")
    return 0


sys.exit(main())

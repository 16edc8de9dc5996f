"""How long does a job stand still when one of its two ranks is killed?

Three arms, interleaved, each sample a fresh job: SIGKILL for one rank once both have done 30 steps; the clock runs from
before kill(2) to the end of the first optimizer step after it on every rank, read from the workers' own clocks.
  ours      muster run -n 2 -- muster-train vit (the recipe's size, on the packed Fashion-MNIST)
  torchrun  the same model in Python: DDP on gloo, AdamW, checkpoint (peers/vit_ddp.py), torchrun's defaults
  unshared  the same with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
torchrun often does not come back with its defaults; what came back is printed, and the better of its medians counts.
"""

import os
import pathlib
import statistics
import sys
import tempfile

from killed_rank import PEERS, pack_images, recovery_of, shown, start_torchrun, start_trainer

SAMPLES = int(os.environ.get("S1_SAMPLES", "5"))
EVERY = 10  # steps between checkpoints, both arms
WARM = 30  # steps of every rank before the kill
STEPS = 100_000  # neither gets there
GIVEN_UP_AFTER = 3  # default torchrun: samples without a recovery before it is left alone


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def sample_ours(work: pathlib.Path, data: pathlib.Path, rank: int) -> float | None:
    words = ["muster-train", "vit", "--data", data, "--mode", "fast", "--steps", STEPS]
    return recovery_of(
        start_trainer(work, 2, [*words, "--checkpoint-every", EVERY, "--log-every", 1000]), 2, rank, WARM
    )


def sample_torchrun(work: pathlib.Path, rank: int, unshared: bool) -> float | None:
    return recovery_of(start_torchrun(work, 2, PEERS / "vit_ddp.py", [work, STEPS, EVERY], unshared), 2, rank, WARM)


def measure(work: pathlib.Path) -> dict[str, list[float | None]]:
    data = pack_images(work)
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

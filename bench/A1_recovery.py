"""How long does a job of N ranks stand still when one of them is killed?

SIGKILL for one rank once all have done 20 steps; the clock runs from before kill(2) to the end of the first optimizer
step after it on every rank (killed_rank.py). Arms interleaved, each sample a fresh job:
  trainer N   muster run -n N -- muster-train vit (the recipe's size, global batch 128), recovered in place
  script N    muster run -n N -- python peers/mlp_ddp.py: DDP, AdamW, gloo, no word of Muster
  torchrun N  peers/vit_ddp.py beside trainer, the same mlp_ddp.py beside script; TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
  default N   torchrun as it comes, which often does not come back: one sample more once it did not
The better of torchrun's two medians counts. A1_SAMPLES (5), A1_CASES ("2 8 16 32 64 script8") make it shorter.
"""

import os
import pathlib
import statistics
import sys
import tempfile

from killed_rank import PEERS, Job, pack_images, recovery_of, shown, start_script, start_torchrun, start_trainer

SAMPLES = int(os.environ.get("A1_SAMPLES", "5"))
CASES = os.environ.get("A1_CASES", "2 8 16 32 64 script8").split()
WITH_TORCHRUN = {"2", "8", "16", "script8"}  # at 64 it would take minutes a sample
WARM = 20  # steps of every rank before the kill
EVERY = 10  # steps between checkpoints, all arms
STEPS = 1_000_000  # none gets there
GIVEN_UP_AFTER = 2  # default torchrun: samples without a recovery before it is left alone


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arms_of(case: str) -> list[str]:
    ours = "script" if case.startswith("script") else "trainer"
    return [ours, "torchrun", "default"] if case in WITH_TORCHRUN else [ours]


def begin(arm: str, case: str, folder: pathlib.Path, data: pathlib.Path) -> Job:
    ranks = int(case.removeprefix("script"))
    if arm == "trainer":
        words = ["muster-train", "vit", "--data", data, "--mode", "fast", "--steps", STEPS]
        return start_trainer(folder, ranks, [*words, "--checkpoint-every", EVERY, "--log-every", 1000])
    script = PEERS / ("mlp_ddp.py" if case.startswith("script") else "vit_ddp.py")
    arguments = [folder, STEPS, EVERY]
    if arm == "script":
        return start_script(folder, ranks, script, arguments)
    return start_torchrun(folder, ranks, script, arguments, unshared=arm == "torchrun")


def sample(arm: str, case: str, number: int, work: pathlib.Path, data: pathlib.Path) -> float | None:
    folder = work / f"{case}-{arm}-{number}"
    folder.mkdir()
    ranks = int(case.removeprefix("script"))
    return recovery_of(begin(arm, case, folder, data), ranks, number % ranks, WARM)


def measure(work: pathlib.Path, data: pathlib.Path) -> dict[str, dict[str, list[float | None]]]:
    times: dict[str, dict[str, list[float | None]]] = {case: {arm: [] for arm in arms_of(case)} for case in CASES}
    for number in range(SAMPLES):
        for case, arms in times.items():
            for arm, found in arms.items():
                if arm == "default" and len(found) >= GIVEN_UP_AFTER and not any(found):
                    continue
                found.append(sample(arm, case, number, work, data))
                say(f"round {number + 1}, {case:8} {arm:8} {shown(found[-1:])}")
    return times


def median_of(times: list[float | None]) -> float | None:
    """Nothing when a sample did not come back: a median over survivors would flatter."""
    return statistics.median(times) if times and None not in times and len(times) == SAMPLES else None


def tell(case: str, arms: dict[str, list[float | None]]) -> bool:
    for arm, found in arms.items():
        say(f"{case:8} {arm:8} {sum(t is not None for t in found)} of {len(found)} came back: {shown(found)}")
    key = f"A1.script.n{case[6:]}" if case.startswith("script") else f"A1.n{case}"
    ours, *peers = [median_of(found) for found in arms.values()]
    if ours is None:
        say(f"{case}: ours did not come back each time: no result")
        return False
    print(f"RESULT {key}.seconds {ours:.4f} s")
    known = [median for median in peers if median is not None]
    if known:
        print(f"RESULT {key}.ratio {min(known) / ours:.2f} x")
    elif peers:
        say(f"{case}: torchrun did not come back each time in either way: no ratio")
    return True


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="muster-a1-") as folder:
        work = pathlib.Path(folder)
        data = pack_images(work)
        times = measure(work, data)
    told = [tell(case, arms) for case, arms in times.items()]  # every case, whatever the one before said
    return 0 if all(told) else 1


sys.exit(main())

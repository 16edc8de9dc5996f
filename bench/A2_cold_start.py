"""How long does a job of N ranks take from its command line to its first all-reduce?

The clock runs from before the launcher is executed until the last rank has it behind it. Arms interleaved, each sample a
fresh job:
  trainer N   muster run -n N -- muster-train vit: to the end of the first optimizer step, which is later than its first
              all-reduce, whose own end no file tells
  script N    muster run -n N -- python peers/mlp_ddp.py: to the end of an all-reduce right behind init_process_group
  torchrun N  the same script
A2_SAMPLES (5), A2_CASES ("2 8 16 32 64 script2 script8") make it shorter.
"""

import os
import pathlib
import statistics
import sys
import tempfile
import time

from killed_rank import PEERS, Job, pack_images, start_script, start_torchrun, start_trainer, stop, wait_until_all_step

SAMPLES = int(os.environ.get("A2_SAMPLES", "5"))
CASES = os.environ.get("A2_CASES", "2 8 16 32 64 script2 script8").split()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def begin(arm: str, ranks: int, folder: pathlib.Path, data: pathlib.Path) -> Job:
    if arm == "trainer":
        words = ["muster-train", "vit", "--data", data, "--mode", "fast", "--steps", 1_000_000, "--log-every", 1000]
        return start_trainer(folder, ranks, words)
    arguments = [folder, 1_000_000, 1_000_000]
    script = PEERS / "mlp_ddp.py"
    if arm == "script":
        return start_script(folder, ranks, script, arguments)
    return start_torchrun(folder, ranks, script, arguments, unshared=True)


def sample(arm: str, case: str, number: int, work: pathlib.Path, data: pathlib.Path) -> float:
    ranks = int(case.removeprefix("script"))
    folder = work / f"{case}-{arm}-{number}"
    folder.mkdir()
    began = time.monotonic_ns()
    job = begin(arm, ranks, folder, data)
    try:
        wait_until_all_step(job, ranks, 1)
        return (max(job.steps(rank)[0][2] for rank in range(ranks)) - began) / 1e9
    finally:
        stop(job)


def main() -> int:
    times: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="muster-a2-") as folder:
        work = pathlib.Path(folder)
        data = pack_images(work)
        for number in range(SAMPLES):
            for case in CASES:
                for arm in ("script", "torchrun") if case.startswith("script") else ("trainer",):
                    took = sample(arm, case, number, work, data)
                    times.setdefault((case, arm), []).append(took)
                    say(f"round {number + 1}, {case:8} {arm:8} {took:.3f} s")
    for case in CASES:
        if case.startswith("script"):
            ours, theirs = (statistics.median(times[case, arm]) for arm in ("script", "torchrun"))
            say(f"{case}: ours {ours:.3f} s, torchrun {theirs:.3f} s")
            print(f"RESULT A2.script.n{case[6:]}.ratio {theirs / ours:.3f} x")
        else:
            print(f"RESULT A2.n{case}.seconds {statistics.median(times[case, 'trainer']):.4f} s")
    return 0


sys.exit(main())

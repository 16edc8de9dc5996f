#!/usr/bin/env python3
"""How fast does one all-reduce of fp32 gradients end on every rank, against torch.distributed on gloo?

Two ranks, 4 MB and 32 MB. Three arms take turns in one run: gloo; ours from private memory (staged); ours from
buffers in the arena. Every rank ends with the sum in its own buffer, which it may overwrite. Each turn is the mean
of many iterations, each figure the median of nine turns. The key is the smaller of the two sizes' ratios of gloo's
time to ours from the arena, where the trainer's gradients live; staged is printed beside it and never hidden.
"""

import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

WORLD = 2
SIZES = {"4mb": 4 << 20, "32mb": 32 << 20}
ITERATIONS = {"4mb": 24, "32mb": 5}
TURNS = 9
MOST = max(SIZES.values())

GLOO_RANK = """
import sys, time, torch, torch.distributed as dist
rank, world, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world)
for line in sys.stdin:
    size, iterations = int(line.split()[0]), int(line.split()[1])
    values = torch.arange(size // 4) % 1000 + float(rank)
    dist.all_reduce(values)
    assert torch.equal(values, (torch.arange(size // 4) % 1000) * float(world) + world * (world - 1) / 2)
    values.zero_()
    dist.barrier()
    begin = time.monotonic()
    for _ in range(iterations):
        dist.all_reduce(values)
    print(f"{(time.monotonic() - begin) / iterations:.9f}", flush=True)
dist.destroy_process_group()
"""


class Arm:
    """The ranks of one arm: each a process that measures when told to."""

    def __init__(self, commands, **options):
        self.ranks = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
            for command in commands
        ]

    def measure(self, command):
        """Seconds of an iteration on the slowest rank."""
        for rank in self.ranks:
            rank.stdin.write(command + "\n")
            rank.stdin.flush()
        answers = [rank.stdout.readline() for rank in self.ranks]
        if not all(answers):
            raise RuntimeError("a rank ended early")
        return max(float(answer) for answer in answers)

    def close(self):
        for rank in self.ranks:
            rank.stdin.close()
        return all(rank.wait(timeout=60) == 0 for rank in self.ranks)


def start_ours(build):
    library = ctypes.CDLL(str(build / "lib/libmuster_coll.so"))
    library.muster_coll_arena_create.argtypes = [ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64]
    arena = library.muster_coll_arena_create(WORLD, MOST, 1)
    if arena < 0:
        raise RuntimeError("no arena")
    program = str(build / "bench/allreduce_bench")
    return Arm([[program, str(r), str(WORLD), str(arena), str(MOST)] for r in range(WORLD)], pass_fds=[arena])


def start_gloo(python, folder):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    store = os.path.join(folder, "store")
    commands = [[python, "-c", GLOO_RANK, str(r), str(WORLD), store] for r in range(WORLD)]
    return Arm(commands, env=environment)


def measure_all(ours, gloo):
    """arm → size → seconds of each turn."""
    times = {arm: {name: [] for name in SIZES} for arm in ("gloo", "staged", "arena")}
    for turn in range(TURNS + 1):
        for name, size in SIZES.items():
            n = ITERATIONS[name]
            results = {
                "gloo": gloo.measure(f"{size} {n}"),
                "staged": ours.measure(f"staged {size} {n}"),
                "arena": ours.measure(f"arena {size} {n}"),
            }
            if turn == 0:  # first touch of memory and of the code
                continue
            for arm, seconds in results.items():
                times[arm][name].append(seconds)
    return times


def report(times):
    ratios = {"staged": [], "arena": []}
    for name in SIZES:
        medians = {arm: statistics.median(turns[name]) for arm, turns in times.items()}
        for arm, turns in times.items():
            low, high = min(turns[name]), max(turns[name])
            speed = SIZES[name] / medians[arm] / 1e9
            print(
                f"{name:>5} {arm:7} {medians[arm] * 1e3:8.3f} ms  ({low * 1e3:.3f} to {high * 1e3:.3f})  "
                f"{speed:5.2f} GB/s  {medians['gloo'] / medians[arm]:5.2f} x gloo",
                file=sys.stderr,
            )
        for arm, found in ratios.items():
            found.append(medians["gloo"] / medians[arm])
    return {arm: min(found) for arm, found in ratios.items()}


def main():
    build = pathlib.Path(os.environ.get("MUSTER_BUILD", "build/release")).resolve()
    venv = pathlib.Path(os.environ.get("MUSTER_VENV", ".venv")).absolute()
    with tempfile.TemporaryDirectory() as folder:
        ours = start_ours(build)
        gloo = start_gloo(str(venv / "bin/python"), folder)
        try:
            times = measure_all(ours, gloo)
        except RuntimeError as error:
            print(f"S4: an arm could not run ({error}); no RESULT", file=sys.stderr)
            return 1
        finally:
            ended = [arm.close() for arm in (ours, gloo)]
    if not all(ended):
        print("S4: a rank failed at its end; no RESULT", file=sys.stderr)
        return 1
    ratios = report(times)
    print(f"RESULT S4.allreduce.staged.ratio {ratios['staged']:.3f} x")
    print(f"RESULT S4.allreduce.ratio {ratios['arena']:.3f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())

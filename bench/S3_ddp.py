#!/usr/bin/env python3
"""How much CPU does a training sample cost, against PyTorch DDP on gloo, for the same model and the same curve?

The vit recipe in fast mode on two ranks of one thread each, at the demo's size and at 4.8 million parameters. Both
arms start from the same parameters and see the same images in the same order, from memory. They stay up and take
turns; a figure is the median over the turns behind the first. The key is the smaller of the two sizes' ratios of the
peer's CPU milliseconds a sample to ours. Samples a second and canonical mode's price are printed beside it.
"""

import ctypes
import gzip
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

WORLD, BATCH = 2, 64
SIZES = {
    "demo": {"patch": 7, "width": 64, "blocks": 3, "heads": 4},
    "4.8M": {"patch": 4, "width": 256, "blocks": 6, "heads": 4},
}
STEPS = {"demo": 40, "4.8M": 2}
TURNS = int(os.environ.get("MUSTER_BENCH_TURNS", "7"))
IMAGES = pathlib.Path("/usr/share/datasets/fashion-mnist")
# Losses of the first turns, relative: fp32 rounding in another order, carried through a few dozen updates.
TOLERANCE = 2e-3


class Arm:
    """The ranks of one arm: each a process that trains when told to."""

    def __init__(self, commands, **options):
        self.ranks = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
            for command in commands
        ]

    def train(self, steps):
        """CPU milliseconds a sample, samples a second, the loss of each step."""
        for rank in self.ranks:
            rank.stdin.write(f"{steps}\n")
            rank.stdin.flush()
        answers = [[float(word) for word in rank.stdout.readline().split()] for rank in self.ranks]
        if not all(answers):
            raise RuntimeError("a rank ended early")
        samples = steps * BATCH * len(self.ranks)
        losses = [statistics.fmean(step) for step in zip(*(answer[2:] for answer in answers), strict=True)]
        cpu = sum(answer[0] for answer in answers)
        return cpu * 1e3 / samples, samples / max(answer[1] for answer in answers), losses

    def close(self):
        for rank in self.ranks:
            rank.stdin.close()
        return all(rank.wait(timeout=60) == 0 for rank in self.ranks)


def unpack(folder):
    """The training images and labels as raw bytes."""
    paths = []
    for name, header in (("train-images-idx3-ubyte", 16), ("train-labels-idx1-ubyte", 8)):
        path = os.path.join(folder, name)
        with gzip.open(IMAGES / f"{name}.gz") as source, open(path, "wb") as out:
            out.write(source.read()[header:])
        paths.append(path)
    return paths


def start_ours(build, common, mode, initial):
    library = ctypes.CDLL(str(build / "lib/libmuster_coll.so"))
    library.muster_coll_arena_create.argtypes = [ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64]
    arena = library.muster_coll_arena_create(WORLD, 64 << 20, 1)
    if arena < 0:
        raise RuntimeError("no arena")
    own = ["--world", str(WORLD), "--arena", str(arena), "--mode", mode, "--initial", initial]
    program = str(build / "bench/s3_vit")
    return Arm([[program, "--rank", str(r), *own, *common] for r in range(WORLD)], pass_fds=[arena])


def start_peer(python, folder, common, initial):
    script = str(pathlib.Path(__file__).with_name("ddp_vit_peer.py"))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    own = ["--world", str(WORLD), "--store", os.path.join(folder, "store"), "--initial", initial]
    commands = [[python, script, "--rank", str(r), *own, *common] for r in range(WORLD)]
    return Arm(commands, env=environment)


def measure(size, build, python, images, folder):
    """arm → [CPU ms a sample, samples a second] of each turn, and the losses of all."""
    pixels, labels = images
    flags = {"batch": BATCH, "pixels": pixels, "labels": labels, **SIZES[size]}
    common = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    initial = os.path.join(folder, "initial")
    arms = {"fast": start_ours(build, common, "fast", initial)}
    figures, losses = {}, {}
    try:
        first = {"fast": arms["fast"].train(STEPS[size])}  # writes the initial parameters
        arms["canonical"] = start_ours(build, common, "canonical", initial + "-canonical")
        arms["ddp"] = start_peer(python, folder, common, initial)
        for turn in range(TURNS + 1):
            for name, arm in arms.items():
                cpu, speed, curve = first.pop(name, None) or arm.train(STEPS[size])
                losses.setdefault(name, []).extend(curve)
                if turn > 0:
                    figures.setdefault(name, []).append((cpu, speed))
    finally:
        ended = [arm.close() for arm in arms.values()]
    if not all(ended):
        raise RuntimeError("a rank failed at its end")
    return figures, losses


def report(size, figures, losses):
    """Ratio to DDP, and canonical mode's price."""
    compared = losses["ddp"][: 2 * STEPS[size]]
    apart = max(abs(ours / theirs - 1) for ours, theirs in zip(losses["fast"], compared, strict=False))
    cpu = {name: statistics.median(turn[0] for turn in turns) for name, turns in figures.items()}
    for name, turns in figures.items():
        low, high = min(turn[0] for turn in turns), max(turn[0] for turn in turns)
        speed = statistics.median(turn[1] for turn in turns)
        print(
            f"{size:>5} {name:10} {cpu[name]:8.4f} CPU ms a sample ({low:.4f} to {high:.4f})  "
            f"{speed:8.1f} samples/s  loss {losses[name][0]:.4f} to {losses[name][-1]:.4f}",
            file=sys.stderr,
        )
    print(f"{size:>5} losses of the first {len(compared)} steps: at most {apart:.1e} apart", file=sys.stderr)
    if apart > TOLERANCE:
        raise RuntimeError(f"the curves are not the same ({apart:.1e} apart): nothing to compare")
    return cpu["ddp"] / cpu["fast"], cpu["canonical"] / cpu["fast"] - 1


def main():
    build = pathlib.Path(os.environ.get("MUSTER_BUILD", "build/release")).resolve()
    venv = pathlib.Path(os.environ.get("MUSTER_VENV", ".venv")).absolute()
    ratios, prices = {}, {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            images = unpack(folder)
            for size in SIZES:
                place = os.path.join(folder, size)
                os.mkdir(place)
                measured = measure(size, build, str(venv / "bin/python"), images, place)
                ratios[size], prices[size] = report(size, *measured)
    except (RuntimeError, OSError) as error:
        print(f"S3: an arm could not run ({error}); no RESULT", file=sys.stderr)
        return 1
    print(f"RESULT S3.ddp.demo.ratio {ratios['demo']:.3f} x")
    print(f"RESULT S3.ddp.4.8M.ratio {ratios['4.8M']:.3f} x")
    print(f"RESULT S3.canonical.price.fraction {max(prices.values()):.3f} 1")
    print(f"RESULT S3.ddp.ratio {min(ratios.values()):.3f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())

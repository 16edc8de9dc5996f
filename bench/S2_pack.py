"""How many times faster than Hugging Face datasets does `muster data pack` pack PNG files in class folders?

Both arms get the same folder (28 × 28 PNG files of Fashion-MNIST, ten class folders), two workers, a warm page cache
and a fresh output each time, and take turns. HF: load_dataset("imagefolder", num_proc=2) with an empty cache, then
save_to_disk(num_proc=2), timed inside the process after its imports. Ours: the whole process, `--no-fsync` because HF
does not sync either; the time with fsync is printed beside it. HF opens the result and counts rows and labels.

    make bench BAR=S2            20,000 images, five rounds
    S2_IMAGES=70000 make bench BAR=S2
"""

import collections
import contextlib
import gzip
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
WORKERS = 2
IMAGES = int(os.environ.get("S2_IMAGES", "20000"))
ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build" / "release")).resolve()
VENV = pathlib.Path(os.environ.get("MUSTER_VENV", ROOT / ".venv")).absolute()
SOURCE = pathlib.Path("/usr/share/datasets/fashion-mnist")

MAKE_IMAGES = """
import gzip, pathlib, sys
from PIL import Image
source, out, count = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
done = 0
for part in ("train", "t10k"):
    pixels = gzip.open(source / f"{part}-images-idx3-ubyte.gz").read()[16:]
    labels = gzip.open(source / f"{part}-labels-idx1-ubyte.gz").read()[8:]
    for i, label in enumerate(labels):
        if done == count:
            break
        folder = out / f"class{label}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.frombytes("L", (28, 28), pixels[784 * i : 784 * (i + 1)]).save(folder / f"{part}-{i:05}.png")
        done += 1
print(done)
"""

HF_PACK = """
import json, sys, time
import datasets
datasets.disable_progress_bars()
images, cache, out, workers = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
started = time.perf_counter()
made = datasets.load_dataset("imagefolder", data_dir=images, split="train", cache_dir=cache, num_proc=workers)
made.save_to_disk(out, num_proc=workers)
print(json.dumps({"seconds": time.perf_counter() - started, "rows": len(made), "version": datasets.__version__}))
"""

HF_COUNT = """
import collections, json, sys
import datasets
opened = datasets.load_from_disk(sys.argv[1])
labels = collections.Counter(opened["label"])
print(json.dumps({"rows": len(opened), "labels": sorted(labels.items()), "size": opened[0]["image"].size}))
"""


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def python(code: str, *words) -> dict:
    """Runs code in the environment's Python, offline, and reads the last line as JSON."""
    command = [str(VENV / "bin" / "python"), "-c", code, *map(str, words)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=1800)
    return json.loads(done.stdout.splitlines()[-1])


def run_ours(images: pathlib.Path, out: pathlib.Path, *words) -> tuple[float, int]:
    """Seconds of the whole process, and its peak memory in bytes."""
    command = [str(BUILD / "bin" / "muster"), "data", "pack", images, out, "--threads", str(WORKERS), *words]
    started = time.perf_counter()
    with open(os.devnull, "wb") as null:
        process = subprocess.Popen(list(map(str, command)), stdout=null, stderr=subprocess.PIPE)
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status != 0:
        raise SystemExit(f"muster data pack failed: {process.stderr.read().decode()}")
    process.stderr.close()
    return seconds, usage.ru_maxrss * 1024


@contextlib.contextmanager
def scratch(work: pathlib.Path, name: str):
    folder = work / name
    shutil.rmtree(folder, ignore_errors=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def expected_labels() -> list:
    labels = b""
    for part in ("train", "t10k"):
        labels += gzip.decompress((SOURCE / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
    return [list(item) for item in sorted(collections.Counter(labels[:IMAGES]).items())]


def check(out: pathlib.Path):
    """HF opens what we packed; a fast pack of something else must not count."""
    counted = python(HF_COUNT, out)
    if counted != {"rows": IMAGES, "labels": expected_labels(), "size": [28, 28]}:
        raise SystemExit(f"HF counts something else in our dataset: {counted}")
    say(f"HF opens ours: {counted['rows']} rows, labels {counted['labels']}")


def main() -> int:
    if not SOURCE.exists():
        say(f"no {SOURCE}: install Debian's dataset-fashion-mnist; no arm can run")
        return 1
    ours, durable, peer, memory = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="muster-s2-") as name:
        work = pathlib.Path(name)
        images = work / "images"
        say(f"writing {IMAGES} PNG files in class folders")
        python(MAKE_IMAGES, SOURCE, images, IMAGES)
        for number in range(ROUNDS):
            with scratch(work, "ours") as out:
                seconds, rss = run_ours(images, out, "--no-fsync")
                ours.append(IMAGES / seconds)
                memory.append(rss)
                if number == 0:
                    check(out)
            with scratch(work, "durable") as out:
                durable.append(IMAGES / run_ours(images, out)[0])
            with scratch(work, "cache") as cache, scratch(work, "theirs") as out:
                made = python(HF_PACK, images, cache, out, WORKERS)
                if made["rows"] != IMAGES:
                    raise SystemExit(f"HF packed {made['rows']} of {IMAGES} images")
                peer.append(IMAGES / made["seconds"])
            say(
                f"round {number + 1}: ours {ours[-1]:,.0f} images/s ({durable[-1]:,.0f} with fsync, "
                f"peak {memory[-1] / 1e6:.0f} MB), HF datasets {made['version']} {peer[-1]:,.0f} images/s"
            )
    say(
        f"median of {ROUNDS}, {IMAGES} images, {WORKERS} workers each: ours {statistics.median(ours):,.0f} images/s, "
        f"with fsync {statistics.median(durable):,.0f}, HF {statistics.median(peer):,.0f}"
    )
    print(f"RESULT S2.hf.ratio {statistics.median(ours) / statistics.median(peer):.1f} x")
    print(f"RESULT S2.rss.bytes {max(memory)} B")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A dataset's file becomes shorter while a program reads it: a clear error that names the file, and no crash."""

import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import zlib

import pytest

SIZE = 14


def png(seed: int) -> bytes:
    rows = b"".join(b"\0" + bytes((seed * 7 + 3 * y + x) % 256 for x in range(SIZE)) for y in range(SIZE))

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture
def packed(muster, tmp_path) -> pathlib.Path:
    """A set of 400 images in two classes and one shard."""
    for number in range(400):
        image = tmp_path / "in" / ("cat" if number % 2 else "dog") / f"{number:03}.png"
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_bytes(png(number))
    done = muster("data", "pack", "in", "set")
    assert done.code == 0, done.err
    return tmp_path / "set"


def shorter(shard: pathlib.Path, was: int) -> str:
    return f"{shard} became shorter while it was read: was {was} bytes, is {shard.stat().st_size}"


def write_large_idx(folder: pathlib.Path, rows: int) -> pathlib.Path:
    folder.mkdir()
    (folder / "train-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, rows, 6, 5) + bytes(rows * 30))
    (folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, rows) + bytes(rows))
    return folder


@pytest.mark.parametrize("manifest", [True, False])
def test_verify_names_a_shard_that_is_cut_while_it_is_looked_at(muster, programs, tmp_path, manifest):
    idx = write_large_idx(tmp_path / "idx", 200_000)
    assert muster("data", "pack", idx, "set", "--no-fsync").code == 0
    if not manifest:
        shutil.rmtree(tmp_path / "set/_muster")
    (shard,) = (tmp_path / "set").glob("*.arrow")
    was = shard.stat().st_size
    process = subprocess.Popen(
        [programs / "muster", "data", "verify", tmp_path / "set", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    maps = pathlib.Path(f"/proc/{process.pid}/maps")
    while process.poll() is None:  # mapped for good only once the file was read as a whole
        lines = [line for line in maps.read_text().splitlines() if line.endswith(shard.name)]
        reading = int(pathlib.Path(f"/proc/{process.pid}/io").read_text().split("rchar: ")[1].split()[0])
        if lines and (reading > was or not manifest):
            break
    os.kill(process.pid, signal.SIGSTOP)
    os.truncate(shard, was // 2 + 77)
    os.kill(process.pid, signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, (process.returncode, err)
    (damage,) = json.loads(out)["splits"][0]["first_damages"]
    assert damage["file"] == f"train/{shard.name}"
    assert damage["what"] == shorter(shard, was)


def test_a_row_that_is_gone_is_not_listed(muster, packed):
    (shard,) = packed.glob("*.arrow")
    shutil.rmtree(packed / "_muster")
    os.truncate(shard, shard.stat().st_size // 2)
    done = muster("data", "ls", "set", "--rows", "400")
    assert done.code == 1 and done.out == "" and shard.name in done.err


TRAIN = ["--patch", "7", "--width", "16", "--blocks", "1", "--batch", "16", "--steps", "1000000", "--log-every", "20"]


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize("decode_threads", [0, 2])
def test_a_training_ends_with_the_error_and_not_with_a_signal(
    programs, packed, tmp_path, wait_until, manifest, decode_threads
):
    if not manifest:
        shutil.rmtree(packed / "_muster")
    (shard,) = packed.glob("*.arrow")
    was = shard.stat().st_size
    flags = ["--data", packed, *TRAIN, "--decode-threads", decode_threads]
    with open(tmp_path / "out", "w") as out:
        process = subprocess.Popen(
            [str(word) for word in (programs / "muster-train", "vit", *flags)],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
    try:
        wait_until(lambda: "step " in (tmp_path / "out").read_text() or process.poll() is not None, "a step")
        os.truncate(shard, was // 3)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1, (process.returncode, err)
    assert shorter(shard, was) in err


def test_a_run_has_the_error_as_its_root_cause(start, programs, packed):
    (shard,) = packed.glob("*.arrow")
    was = shard.stat().st_size
    run = start("muster-train", "vit", "--data", packed, *TRAIN, binaries=programs, flags=["--max-restarts", 0])
    run.wait_step(20)
    os.truncate(shard, was // 3)
    assert run.end() == 1, run.err
    assert run.fault()["cause"] == "ended with exit code 1"
    (told,) = [line for line in run.err.splitlines() if "failed after" in line]
    assert shorter(shard, was) in told
    run.assert_nothing_left()


def test_a_run_that_loses_its_data_is_not_started_again(start, programs, packed):
    (shard,) = packed.glob("*.arrow")
    was = shard.stat().st_size
    run = start("muster-train", "vit", "--data", packed, *TRAIN, binaries=programs)
    run.wait_step(20)
    os.truncate(shard, was // 3)
    assert run.end() == 1, run.err
    assert not run.log_exists(0, generation=2) and not run.log_exists(1, generation=2)
    (told,) = [line for line in run.err.splitlines() if "failed after" in line]
    assert shorter(shard, was) in told and "another start would end in the same way" in told
    assert run.result()["restarts"] == 0
    run.assert_nothing_left()

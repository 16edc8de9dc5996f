"""Checkpoints read by a reader of their own: docs/formats/checkpoint.md with the standard library and numpy only."""

import hashlib
import json
import pathlib
import shutil
import struct

import numpy
import pytest
from checksums import crc32c

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "checkpoint"
STEP = "step-000000000003"
DTYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1", "BF16": "<u2", "F16": "<f2"}


def read_safetensors(path):
    """(header bytes, header, data)"""
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    return raw[: 8 + length], json.loads(raw[8 : 8 + length]), raw[8 + length :]


def read_checkpoint(folder):
    """group → name → array, every checksum compared."""
    text = (folder / "manifest.json").read_bytes()
    assert (folder / "manifest.crc32c").read_text() == f"{crc32c(text):08x}\n"
    manifest = json.loads(text)
    assert manifest["format"] == "muster-checkpoint/1"
    index = manifest["index"]
    flat = {g["name"]: numpy.zeros(index["length"], DTYPES[g["dtype"]]) for g in index["groups"]}
    for file in manifest["files"]:
        head, header, data = read_safetensors(folder / file["name"])
        assert len(head) == file["header_bytes"] and len(head) % 64 == 0 and len(data) == file["data_bytes"]
        assert crc32c(head) == file["header_crc32c"]
        blocks = [data[at : at + manifest["block_bytes"]] for at in range(0, len(data), manifest["block_bytes"])]
        assert [crc32c(block) for block in blocks] == file["crc32c"]
        for piece in file["slices"]:
            array = flat[piece["group"]]
            named = header[f"{piece['group']}@{piece['begin']:016}"]
            assert named["shape"] == [piece["length"]] and named["data_offsets"][0] == piece["data_offset"]
            array[piece["begin"] : piece["begin"] + piece["length"]] = numpy.frombuffer(
                data, array.dtype, piece["length"], piece["data_offset"]
            )
    return {
        group: {
            name: array[t["offset"] : t["offset"] + t["length"]].reshape(t["shape"])
            for name, t in index["tensors"].items()
        }
        for group, array in flat.items()
    }


def digest(folder, only=None):
    manifest = json.loads((folder / "manifest.json").read_text())
    dtypes = {group["name"]: group["dtype"] for group in manifest["index"]["groups"]}
    sha = hashlib.sha256(b"muster-digest/1\n")
    for group, tensors in sorted(read_checkpoint(folder).items()):
        if only and group != only:
            continue
        for name, array in sorted(tensors.items()):
            shape = ",".join(map(str, array.shape))
            sha.update(f"{group}\t{name}\t{dtypes[group]}\t{shape}\n".encode())
            sha.update(array.tobytes())
    return sha.hexdigest()


@pytest.fixture
def checkpoints(tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "checkpoints")
    return tmp_path / "checkpoints"


def flip(path, at):
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


def test_another_reader_sees_the_values():
    read = read_checkpoint(GOLDEN / STEP)
    assert read["param"]["w"].tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]]
    assert read["param"]["b"] == -1
    assert read["exp_avg_sq"]["w"].tolist() == [[0, 0.25, 1], [2.25, 4, 6.25]]


def test_digest_is_the_one_of_another_reader(muster, checkpoints):
    for name, group in (("all", None), ("param", "param")):
        done = muster("ckpt", "digest", checkpoints, "--group", name, "--json")
        assert done.code == 0
        assert done.json()["checkpoints"][0]["digest"] == digest(checkpoints / STEP, group)


def test_digest_compares(muster, checkpoints, tmp_path):
    shutil.copytree(checkpoints, tmp_path / "copy")
    done = muster("ckpt", "digest", checkpoints, tmp_path / "copy" / STEP)
    assert done.code == 0 and done.out.endswith("bitwise equal\n")


def test_export_is_plain_safetensors(muster, checkpoints, tmp_path):
    done = muster("ckpt", "export", checkpoints, "out.safetensors")
    assert done.code == 0, done.err
    _, header, data = read_safetensors(tmp_path / "out.safetensors")
    begin, end = header["w"]["data_offsets"]
    assert header["w"]["dtype"] == "F32" and header["w"]["shape"] == [2, 3]
    assert numpy.frombuffer(data[begin:end], "<f4").tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
    assert muster("ckpt", "export", checkpoints, "out.safetensors").code == 5


def test_ls_show_verify_diff(muster, checkpoints):
    rows = muster("ckpt", "ls", checkpoints, "--json").json()["checkpoints"]
    assert [(row["step"], row["ranks"], row["model"]) for row in rows] == [(3, 2, "golden")]
    shown = muster("ckpt", "show", checkpoints, "--json").json()
    assert shown["random_key"] == 0xFFFFFFFFFFFFFFF7 and shown["config"] == {"width": 3}
    assert muster("ckpt", "verify", checkpoints, "--json").json()["ok"] is True
    done = muster("ckpt", "diff", checkpoints, checkpoints, "--json")
    assert done.code == 0 and done.json()["bitwise_equal"] is True


def test_damage_is_named_and_nothing_is_printed_for_it(muster, checkpoints):
    victim = checkpoints / STEP / "rank-00001-of-00002.safetensors"
    flip(victim, victim.stat().st_size - 1)
    done = muster("ckpt", "verify", checkpoints, "--json")
    assert done.code == 1 and done.json()["ok"] is False
    assert victim.name in done.json()["damage"][0] and "exp_avg_sq" in done.json()["damage"][0]
    done = muster("ckpt", "digest", checkpoints, "--json")
    assert done.code == 1 and done.json()["error"]["code"] == "data_loss"
    flip(checkpoints / STEP / "manifest.json", 10)
    assert "damage" in muster("ckpt", "ls", checkpoints, "--json").json()["checkpoints"][0]
    assert "checksum" in muster("ckpt", "show", checkpoints).err


def test_what_is_not_there_is_not_found(muster, tmp_path):
    for verb in ("ls", "show", "verify", "digest"):
        done = muster("ckpt", verb, "nothing", "--json")
        assert done.code == 3 and done.json()["error"]["code"] == "not_found"
    (tmp_path / "empty").mkdir()
    assert muster("ckpt", "ls", "empty", "--json").json()["checkpoints"] == []
    assert muster("ckpt", "show", "empty").code == 3

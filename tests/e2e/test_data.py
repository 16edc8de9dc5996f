"""muster data pack, verify, ls as a user meets them: output, exit codes, and what stays when something breaks."""

import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest
from checksums import crc32c

ROWS = 250


def write_idx(folder: pathlib.Path, rows: int = ROWS) -> pathlib.Path:
    folder.mkdir(exist_ok=True)
    pixels = bytes((7 * i) % 256 for i in range(rows * 6 * 5))
    (folder / "train-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, rows, 6, 5) + pixels)
    (folder / "train-labels-idx1-ubyte").write_bytes(
        struct.pack(">II", 0x801, rows) + bytes(i % 10 for i in range(rows))
    )
    return folder


@pytest.fixture
def idx(tmp_path) -> pathlib.Path:
    return write_idx(tmp_path / "idx")


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_pack_verify_ls_tell_the_same(muster, idx, tmp_path):
    packed = muster("data", "pack", idx, "set", "--labels", "a,b,c,d,e,f,g,h,i,j", "--json").json()
    verified = muster("data", "verify", "set", "--json").json()
    listed = muster("data", "ls", "set", "--json").json()
    assert packed["rows"] == ROWS
    assert verified["ok"] and verified["splits"][0]["rows"] == ROWS
    assert packed["splits"][0]["id"] == verified["splits"][0]["id"] == listed["splits"][0]["id"]
    assert listed["splits"][0]["label_names"] == list("abcdefghij")
    assert muster("data", "verify", "set").out.count("ok") == 1


def test_stdout_is_data_and_notes_go_to_stderr(muster, idx):
    done = muster("data", "pack", idx, "set")
    assert done.code == 0
    assert "images/s" in done.out and "note" not in done.out
    assert "note: label names" in done.err
    assert "\r" not in done.err  # no progress bar off a terminal


def test_a_terminal_gets_a_progress_line_with_rate_and_eta(programs, tmp_path):
    idx = write_idx(tmp_path / "idx", 600)
    reading, writing = pty.openpty()
    done = subprocess.run(
        [programs / "muster", "data", "pack", idx, tmp_path / "set"],
        stdout=subprocess.PIPE,
        stderr=writing,
        text=True,
        timeout=60,
    )
    os.close(writing)
    drawn = os.read(reading, 1 << 16).decode()
    os.close(reading)
    assert done.returncode == 0
    assert "600/600 images" in drawn and re.search(r"\d (KiB|MiB|B)/s  ETA", drawn), drawn
    assert drawn.endswith("\x1b[K")  # the line is cleared at the end
    assert "\x1b" not in done.stdout


def test_the_progress_of_a_verify_is_in_units_for_people_and_said_once(programs, tmp_path):
    subprocess.run(
        [programs / "muster", "data", "pack", write_idx(tmp_path / "idx", 600), tmp_path / "set"], check=True
    )
    reading, writing = pty.openpty()
    command = [programs / "muster", "data", "verify", tmp_path / "set"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=writing, timeout=60)
    os.close(writing)
    drawn = os.read(reading, 1 << 16).decode()
    os.close(reading)
    assert done.returncode == 0
    *_, last = drawn.removesuffix("\r\x1b[K").split("\r\x1b[K")
    size = r"\d[\d.]* (B|KiB|MiB|GiB)"
    assert re.fullmatch(rf"\[=* *\] +100 %  {size} of {size}  {size}/s  ETA \d+:\d\d", last), drawn


@pytest.mark.parametrize("words", [("pack", "nowhere", "out"), ("ls", "nowhere"), ("verify", "nowhere")])
def test_a_missing_input_is_not_found_in_json_too(muster, words, tmp_path):
    done = muster("data", *words, "--json")
    assert done.code == 3
    error = done.json()["error"]
    assert error["message"] == f"there is no {'input' if words[0] == 'pack' else 'dataset'} at {tmp_path}/nowhere"
    assert error["hint"]
    assert list(tmp_path.iterdir()) == []


def test_an_absent_split_is_not_found_and_those_there_are_named(muster, idx):
    assert muster("data", "pack", idx, "set").code == 0
    for verb in ("ls", "verify"):
        done = muster("data", verb, "set", "--split", "tset")
        assert done.code == 3 and "no split 'tset'" in done.err and "it has: train" in done.err


PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55"
    b"\0\0\0\x0aIDATx\x9cc`\0\0\0\x02\0\x01\x48\xaf\xa4\x71\0\0\0\0IEND\xaeB`\x82"
)


BAD_IMAGES = {
    "cut short": PNG[:50],
    "a GIF": b"GIF89a",
    "a million pixels wide": PNG[:16] + struct.pack(">II", 1 << 20, 1 << 20) + PNG[24:],
    "a link": None,
    "no pixels behind the header": PNG[:43] + b"\xff" * 8 + PNG[51:],
}


@pytest.mark.parametrize("what", list(BAD_IMAGES))
def test_a_bad_image_is_no_mistake_of_the_command_line(muster, tmp_path, what):
    (tmp_path / "in/cat").mkdir(parents=True)
    (tmp_path / "in/cat/1.png").write_bytes(PNG)
    assert muster("data", "pack", "in", "good", "--check", "decode").code == 0
    if BAD_IMAGES[what] is None:
        (tmp_path / "in/cat/2.png").symlink_to("1.png")
    else:
        (tmp_path / "in/cat/2.png").write_bytes(BAD_IMAGES[what])
    done = muster("data", "pack", "in", "set", "--check", "decode")
    assert done.code == 1 and "in/cat/2.png" in done.err, done.err
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("keep", [0, 3, 12, 100])
def test_a_cut_idx_file_is_no_mistake_of_the_command_line(muster, idx, tmp_path, keep):
    images = idx / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:keep])
    done = muster("data", "pack", idx, "set")
    assert done.code == 1 and images.name in done.err, done.err
    images.write_bytes(struct.pack(">IIII", 0x803, ROWS, 1 << 20, 1 << 20))
    assert muster("data", "pack", idx, "set").code == 1
    (idx / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, 0xFFFFFFFF))
    assert muster("data", "pack", idx, "set").code == 1


@pytest.mark.parametrize("folder", ["1.png", "train/cat/1.png test", "cat/deep" + "/x" * 40])
def test_class_folders_that_do_not_fit_are_no_mistake_of_the_command_line(muster, tmp_path, folder):
    first, _, other = folder.partition(" ")
    for path in filter(None, (first if first.endswith(".png") else first + "/1.png", other and "other/1.png")):
        (tmp_path / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / path).write_bytes(PNG)
    assert muster("data", "pack", "in", "set").code == 1


def edit_json(path: pathlib.Path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


BROKEN_SETS = {
    "a manifest of junk": lambda at: (at / "_muster/manifest").write_bytes(b"junk" * 100),
    "a manifest that is a folder": lambda at: ((at / "_muster/manifest").unlink(), (at / "_muster/manifest").mkdir()),
    "a name that leaves the folder": lambda at: edit_json(at / "state.json", _data_files=[{"filename": "../x"}]),
    "no list of files": lambda at: edit_json(at / "state.json", _data_files=7),
    "no files": lambda at: edit_json(at / "state.json", _data_files=[]),
    "an indices file": lambda at: edit_json(at / "state.json", _indices_data_files=[{"filename": "i.arrow"}]),
    "a state.json of junk": lambda at: (at / "state.json").write_bytes(b"[[[["),
    "a socket for a shard": lambda at: put_socket(next(at.glob("*.arrow"))),
    "a list of no splits": lambda at: (at / "dataset_dict.json").write_text('{"splits": []}'),
    "a split that leaves the folder": lambda at: (at / "dataset_dict.json").write_text('{"splits": ["../a"]}'),
}


def put_socket(path: pathlib.Path):
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))


@pytest.mark.parametrize("what", list(BROKEN_SETS))
@pytest.mark.parametrize("manifest", [True, False])
def test_a_broken_set_is_no_mistake_of_the_command_line(muster, idx, tmp_path, monkeypatch, what, manifest):
    monkeypatch.chdir(tmp_path)
    assert muster("data", "pack", idx, "set").code == 0
    if not manifest and "manifest" not in what:
        shutil.rmtree(tmp_path / "set/_muster")
    BROKEN_SETS[what](tmp_path / "set")
    for words in (("verify", "set"), ("ls", "set"), ("ls", "set", "--rows", "1")):
        done = muster("data", *words)
        assert done.code == 1, (words, done.code, done.err)
        assert json.loads(muster("data", *words, "--json").out)


def test_a_damaged_manifest_leaves_the_rows_to_be_counted(muster, idx, tmp_path):
    assert muster("data", "pack", idx, "set", "--shard-size", "20KB").code == 0
    whole = muster("data", "verify", "set", "--json").json()["splits"][0]
    assert whole["shards"] > 1
    (tmp_path / "set/_muster/manifest").write_bytes(b"junk" * 100)
    done = muster("data", "verify", "set")
    assert done.code == 1 and "structure only, its checksums cannot be read: 1 DAMAGED" in done.out
    report = muster("data", "verify", "set", "--json").json()["splits"][0]
    assert (report["rows"], report["shards"]) == (ROWS, whole["shards"])
    assert report["opened"] and not report["checksums"]


def test_label_names_that_no_image_has_are_told(muster, programs, idx, tmp_path):
    names = "a,b,c,d,e,f,g,h,i,j,k,l"
    done = muster("data", "pack", idx, "set", "--labels", names)
    assert done.code == 0 and "note: 2 of the 12 classes have no image: k, l" in done.err
    for name in ("cat", "dog"):
        (tmp_path / "in/train" / name).mkdir(parents=True)
        (tmp_path / "in/train" / name / "1.png").write_bytes(PNG)
    (tmp_path / "in/test/dog").mkdir(parents=True)
    (tmp_path / "in/test/dog/1.png").write_bytes(PNG)
    notes = muster("data", "pack", "in", "pets", "--labels", "cat,dog,cow", "--json").json()["notes"]
    assert notes == [
        "1 of the 3 classes has no image: cow",
        "the split test has no image of 1 of the 3 classes, which will not be scored: cat",
    ]
    for labels in ("", "cat,,dog", "cat,dog,", "cat,dog,cat", "cat", "cat,dgo", b"cat,d\xffg"):
        words = [programs / "muster", "data", "pack", "in", "no", "--labels", labels]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "label" in done.stderr, (labels, done.stderr)
    assert not (tmp_path / "no").exists()
    assert muster("data", "pack", "--labels", "cat,dog", "in", "flags-first").code == 0
    for labels in ("", "cat\n\ndog\n", "cat\ndog\n\n"):
        (tmp_path / "labels").write_text(labels)
        done = muster("data", "pack", "in", "no", "--labels-file", "labels")
        assert done.code == 2 and "labels" in done.err, (labels, done.err)
    (tmp_path / "labels").write_text("dog\r\ncat\r\n")
    assert muster("data", "pack", "in", "by-file", "--labels-file", "labels").code == 0
    assert muster("data", "ls", "by-file", "--json").json()["splits"][0]["label_names"] == ["dog", "cat"]


def test_images_of_several_sizes_are_told(muster, tmp_path):
    (tmp_path / "in/cat").mkdir(parents=True)
    (tmp_path / "in/cat/1.png").write_bytes(PNG)
    wide = PNG[:16] + struct.pack(">II", 2, 1) + PNG[24:]
    (tmp_path / "in/cat/2.png").write_bytes(wide)
    (tmp_path / "in/cat/3.png").write_bytes(wide)
    done = muster("data", "pack", "in", "set")
    assert "note: the images have 2 sizes: 2 × 1 (2 images, the first cat/2.png), 1 × 1 (1 image" in done.err
    images = muster("data", "pack", "in", "set", "--replace", "--json").json()["images"]
    assert images["others"] == 0
    assert images["kinds"][1] == {"width": 2, "height": 1, "channels": 1, "images": 2, "first": "cat/2.png"}


def test_who_packs_a_dataset_is_told_that_it_is_one(muster, idx):
    assert muster("data", "pack", idx, "set").code == 0
    done = muster("data", "pack", "set", "again")
    assert done.code == 3 and "it is a dataset already: muster data ls set" in done.err


def test_one_is_not_many(muster, tmp_path):
    (tmp_path / "in/cat").mkdir(parents=True)
    (tmp_path / "in/cat/1.png").write_bytes(PNG)
    (tmp_path / "in/cat/2.png").write_bytes(b"")
    packed = muster("data", "pack", "in", "set", "--on-error", "skip").out
    assert "1 image " in packed and "packed 1 image into" in packed and "left out 1 bad image\n" in packed
    assert "1 row  1 shard  1 batch  " in muster("data", "verify", "set").out
    listed = muster("data", "ls", "set").out
    assert "1 row " in listed and "1 shard " in listed and "1 class: cat" in listed


def test_an_existing_output_is_refused_and_replaced_on_request(muster, idx, tmp_path):
    assert muster("data", "pack", idx, "set").code == 0
    before = contents(tmp_path / "set")
    refused = muster("data", "pack", idx, "set")
    assert refused.code == 5 and "--replace" in refused.err
    assert contents(tmp_path / "set") == before
    write_idx(idx, 2 * ROWS)
    assert muster("data", "pack", idx, "set", "--replace").code == 0
    assert muster("data", "ls", "set", "--json").json()["splits"][0]["rows"] == 2 * ROWS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["idx", "set"]


def test_damage_is_named_by_file_batch_and_row(muster, idx, tmp_path):
    assert muster("data", "pack", idx, "set").code == 0
    (shard,) = (tmp_path / "set").glob("*.arrow")
    content = bytearray(shard.read_bytes())
    starts = [at for at in range(len(content)) if content.startswith(b"\x89PNG", at)]
    content[starts[142] + 45] ^= 1
    shard.write_bytes(content)
    done = muster("data", "verify", "set", "--json")
    assert done.code == 1
    assert done.json()["damages"] == 1
    damage = done.json()["splits"][0]["first_damages"][0]
    assert (damage["file"], damage["batch"], damage["row"]) == (f"train/{shard.name}", 1, 42)
    assert "damaged" in done.err
    shard.write_bytes(content[:-100])
    done = muster("data", "verify", "set")
    assert done.code == 1
    train, named = done.out.splitlines()[:2]
    assert train.split("  ")[0] == "train"
    assert f"0 of {ROWS} rows  1 shard  0 of 3 batches  0 B of " in train, train
    assert train.endswith("all checksums: 1 DAMAGED")
    assert named == (f"  train/{shard.name} has {len(content) - 100} bytes, the manifest says {len(content)}"), (
        "the file once"
    )
    report = muster("data", "verify", "set", "--json").json()["splits"][0]
    assert (report["rows"], report["recorded"]) == (0, {"batches": 3, "rows": ROWS, "bytes": len(content)})


def test_damage_of_a_row_index_is_named_as_its_own(muster, idx, tmp_path):
    assert muster("data", "pack", idx, "set").code == 0
    (index,) = (tmp_path / "set/_muster").glob("*.idx")
    content = bytearray(index.read_bytes())
    content[32 + 12 * 142 + 8] ^= 1
    index.write_bytes(content)
    (damage,) = muster("data", "verify", "set", "--json").json()["splits"][0]["first_damages"]
    assert (damage["file"], damage["batch"]) == (f"train/_muster/{index.name}", 1)
    assert f"train/_muster/{index.name}, batch 1: its part of the row index" in muster("data", "verify", "set").out


def test_a_full_disk_leaves_the_old_set_and_nothing_else(muster, programs, idx, tmp_path):
    assert muster("data", "pack", idx, "set").code == 0
    before = contents(tmp_path / "set")
    write_idx(idx, 4 * ROWS)

    def no_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    done = subprocess.run(
        [programs / "muster", "data", "pack", idx, "set", "--replace"],
        cwd=tmp_path,
        preexec_fn=no_room,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert "write" in done.stderr
    assert contents(tmp_path / "set") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["idx", "set"]


def test_a_limit_of_file_sizes_leaves_nothing_either(programs, idx, tmp_path):
    words = [programs / "muster", "data", "pack", idx, tmp_path / "limited"]
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1, done.stderr
    assert "ulimit -f" in done.stderr
    assert not [path.name for path in tmp_path.iterdir() if "limited" in path.name]


def test_a_killed_pack_is_cleared_by_the_next(muster, programs, tmp_path):
    idx = write_idx(tmp_path / "idx", 60_000)
    process = subprocess.Popen(
        [programs / "muster", "data", "pack", idx, "set", "--threads", "1"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    half = tmp_path / ".set.muster-part"
    while process.poll() is None and not half.exists():
        os.sched_yield()
    process.kill()
    process.wait()
    assert not (tmp_path / "set").exists()
    write_idx(idx)
    assert muster("data", "pack", idx, "set").code == 0
    assert not half.exists()


def test_rows_print_as_json(muster, idx):
    assert muster("data", "pack", idx, "set").code == 0
    lines = [json.loads(line) for line in muster("data", "ls", "set", "--rows", "98:101").out.splitlines()]
    assert [line["row"] for line in lines] == [98, 99, 100]
    assert lines[2]["source"] == "train-images-idx3-ubyte[100]"
    assert muster("data", "ls", "set", "--rows", "x").code == 2


@pytest.mark.parametrize("flags", [(), ("--json",)])
@pytest.mark.parametrize("what", ["image", "labels", "index", "no index"])
def test_no_row_is_listed_that_fails_its_checksum(muster, idx, tmp_path, what, flags):
    assert muster("data", "pack", idx, "set").code == 0
    (shard,) = (tmp_path / "set").glob("*.arrow")
    (index,) = (tmp_path / "set/_muster").glob("*.idx")
    content = bytearray(shard.read_bytes())
    starts = [at for at in range(len(content)) if content.startswith(b"\x89PNG", at)]
    if what == "image":
        content[starts[3] + 45] ^= 1
    elif what == "labels":
        labels = struct.pack("<10q", *range(10))
        content[content.index(labels)] ^= 1
    shard.write_bytes(content)
    if what == "index":
        index.write_bytes(index.read_bytes()[:40] + b"\xff" + index.read_bytes()[41:])
    elif what == "no index":
        index.unlink()
    done = muster("data", "ls", "set", "--rows", "5", *flags)
    assert done.code in (1, 3), done.out
    named = f"_muster/{index.name}" if "index" in what else f"{shard.name}, batch 0"
    assert named in done.err, done.err
    assert (", row 3: " in done.err) == (what == "image")
    listed = [] if flags else [json.loads(line)["row"] for line in done.out.splitlines()]
    assert listed == ([0, 1, 2] if what == "image" and not flags else [])
    if flags:
        assert done.json()["error"]["message"] in done.err


@pytest.mark.parametrize("text", ["-1", "x", "", "5:3", "1:", ":", "1:2:3", "99999999999999999999999", "0x5", " 5"])
def test_a_range_that_is_none_is_refused_by_the_name_of_its_flag(muster, idx, text):
    assert muster("data", "pack", idx, "set").code == 0
    done = muster("data", "ls", "set", f"--rows={text}")
    assert done.code == 2 and "--rows" in done.err and done.out == ""


def as_nobody(programs, *words, cwd):
    """The program as a user who may read only what everybody may; tests here may run as root."""
    return subprocess.run(
        [programs / "muster", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        user=65534 if os.getuid() == 0 else None,
        group=65534 if os.getuid() == 0 else None,
    )


@pytest.fixture
def open_path(tmp_path):
    """The folders above the test's own, open to everybody while it runs."""
    changed = []
    for folder in [tmp_path, *tmp_path.parents]:
        mode = folder.stat().st_mode & 0o777
        if mode & 0o005 != 0o005 and folder.stat().st_uid == os.getuid():
            folder.chmod(mode | 0o005)
            changed.append((folder, mode))
    yield tmp_path
    for folder, mode in changed:
        folder.chmod(mode)


@pytest.mark.parametrize("what", ["dataset_info.json", "_muster/manifest", "_muster", "data-00000-of-00001.arrow"])
def test_what_may_not_be_read_is_denied_and_not_damaged(muster, programs, idx, open_path, what):
    assert muster("data", "pack", idx, "set").code == 0
    (open_path / "set" / what).chmod(0)
    done = as_nobody(programs, "data", "verify", "set", cwd=open_path)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "permission denied" in done.stderr and "pack it again" not in done.stderr
    assert "NOT CHECKED" in done.stdout and "DAMAGED" not in done.stdout
    done = as_nobody(programs, "data", "verify", "set", "--json", cwd=open_path)
    report = json.loads(done.stdout)
    assert not report["ok"] and report["damages"] == 0
    assert report["splits"][0]["error"]["code"] == "denied" and report["splits"][0]["error"]["hint"]
    (open_path / "set" / what).chmod(0o755)


def test_each_file_that_may_not_be_read_is_named(muster, programs, idx, open_path):
    assert muster("data", "pack", idx, "set", "--shard-size", "20KB").code == 0
    shards = sorted((open_path / "set").glob("*.arrow"))
    hidden = [*shards[:2], open_path / "set/dataset_info.json", open_path / f"set/_muster/{shards[2].name}.idx"]
    for path in hidden:
        path.chmod(0)
    done = as_nobody(programs, "data", "verify", "set", cwd=open_path)
    assert done.returncode == 4 and "DAMAGED" not in done.stdout, done.stdout
    assert all(path.name in done.stderr for path in hidden), done.stderr
    report = json.loads(as_nobody(programs, "data", "verify", "set", "--json", cwd=open_path).stdout)
    assert len(report["splits"][0]["unread"]) == len(hidden)


def test_a_later_manifest_asks_for_a_later_program(muster, idx, tmp_path):
    assert muster("data", "pack", idx, "set").code == 0
    manifest = tmp_path / "set/_muster/manifest"
    content = bytearray(manifest.read_bytes())
    content[8] = 2
    manifest.write_bytes(content)
    done = muster("data", "verify", "set")
    assert done.code == 1 and "1 DAMAGED" in done.out and "its checksum is that of version 1" in done.out
    content[52:56] = bytes(4)
    content[52:56] = crc32c(content).to_bytes(4, "little")
    manifest.write_bytes(content)
    done = muster("data", "verify", "set")
    assert done.code == 1 and "NOT CHECKED" in done.out
    assert "or a later one" in done.err and "pack it again" not in done.err


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--max-pixels", "-1"),
        ("--max-pixels", "0"),
        ("--max-pixels", "99999999999999999999999"),
        ("--max-pixels", "1e9"),
        ("--max-file", "0"),
        ("--max-file", "-1"),
        ("--max-file", "99999999999999999999999"),
        ("--shard-size", "0"),
        ("--shard-size", "-5"),
        ("--threads", "-1"),
        ("--threads", "99999999999"),
        ("--threads", "257"),
    ],
)
def test_a_number_out_of_range_is_refused_by_the_name_of_its_flag(muster, idx, tmp_path, flag, value):
    done = muster("data", "pack", idx, "set", f"{flag}={value}")
    assert done.code == 2 and flag in done.err, done.err
    assert not (tmp_path / "set").exists()


def test_notes_are_in_the_json_too(muster, idx):
    notes = muster("data", "pack", idx, "set", "--json").json()["notes"]
    assert any("label names" in note for note in notes)


def test_help_names_the_options(muster):
    done = muster("help", "data", "pack")
    assert done.code == 0
    for option in ("--replace", "--threads", "--on-error", "--labels"):
        assert option in done.out


def begin_a_long_pack(programs, tmp_path, *words) -> subprocess.Popen:
    """Returns when the new set is being built; that takes seconds more."""
    idx = write_idx(tmp_path / "long", 400_000)
    process = subprocess.Popen(
        [programs / "muster", "data", "pack", idx, "set", "--replace", "--threads", "1", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell ignores it
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".set.muster-part/*")) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert process.poll() is None, process.communicate()
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_pack_removes_what_it_built(muster, programs, idx, tmp_path, number):
    assert muster("data", "pack", idx, "set").code == 0
    before = contents(tmp_path / "set")
    process = begin_a_long_pack(programs, tmp_path, "--json")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert json.loads(out)["error"]["code"] == "cancelled"
    assert err.splitlines()[-1] == "muster: the pack was stopped, and nothing was changed"
    assert contents(tmp_path / "set") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["idx", "long", "set"]


def test_whoever_stops_a_pack_twice_does_not_wait(programs, tmp_path):
    process = begin_a_long_pack(programs, tmp_path)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM and out == ""
    assert (tmp_path / ".set.muster-part").exists() and not (tmp_path / "set").exists()

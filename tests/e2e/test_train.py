"""muster-train as a user meets it: what it refuses before the first step, what it says, and whom it lets into a folder."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import zlib

import pytest
from checksums import crc32c

SIZE = 14
SMALL = {"--patch": 7, "--width": 16, "--blocks": 1, "--batch": 16, "--steps": 4, "--decode-threads": 0}


def small_but(*words) -> list[str]:
    """The flags of a small run but for those that `words` give."""
    kept = [word for flag, value in SMALL.items() if flag not in words for word in (flag, value)]
    return [str(word) for word in (*kept, *words)]


def png(shade: int, channels: int = 1, seed: int = 0, size: int = SIZE) -> bytes:
    rows = b"".join(
        b"\0" + bytes((shade + 7 * seed + 3 * y + x) % 256 for x in range(size * channels)) for y in range(size)
    )

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", size, size, 8, 0 if channels == 1 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_images(
    folder: pathlib.Path,
    classes=("cat", "dog"),
    count: int = 16,
    colour_from: int = 1000,
    grey_from: int | None = None,
    larger_from: int = 1000,
):
    """`count` images a class, grey before image `colour_from` (in colour before `grey_from`), of one size before
    `larger_from`."""
    for number, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            size = 2 * SIZE if i >= larger_from else SIZE
            colour = i >= colour_from if grey_from is None else i < grey_from
            image = png(100 * number, 3 if colour else 1, i, size)
            (folder / name / f"{i:03}.png").write_bytes(image)


def join(folder: pathlib.Path, **splits: pathlib.Path) -> pathlib.Path:
    """A DatasetDict of folders that were packed one by one."""
    folder.mkdir()
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))
    for name, source in splits.items():
        shutil.copytree(source, folder / name)
    return folder


@pytest.fixture
def pack(muster, tmp_path):
    """pack(name, …) → a packed folder of one split, made by write_images(…)."""

    def make(name: str, **images) -> pathlib.Path:
        write_images(tmp_path / f"{name}-images", **images)
        done = muster("data", "pack", tmp_path / f"{name}-images", tmp_path / name)
        assert done.code == 0, done.err
        return tmp_path / name

    return make


@pytest.fixture
def data(pack, tmp_path) -> pathlib.Path:
    return join(tmp_path / "data", train=pack("a"), test=pack("b", count=5))


@pytest.fixture
def train_command(programs):
    def command(data, *words) -> list[str]:
        return [str(programs / "muster-train"), "vit", "--data", str(data), *small_but(*words)]

    return command


@pytest.fixture
def train(train_command, tmp_path):
    def run(data, *words, **environment) -> subprocess.CompletedProcess:
        command = train_command(data, *words)
        environment = os.environ | environment
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60)

    return run


def make_heartbeat_page(steps: int) -> int:
    """A descriptor of a page as docs/formats/heartbeat.md has it, with so many records announced."""
    page = os.memfd_create("muster-heartbeat", os.MFD_ALLOW_SEALING)
    os.ftruncate(page, 69632)
    os.pwrite(page, b"MUSTRHB1" + struct.pack("<4I", 1, 0, 1024, 64), 0)
    os.pwrite(page, struct.pack("<Q", steps), 104)
    fcntl.fcntl(page, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return page


def refused(done: subprocess.CompletedProcess, *parts: str):
    """It ended by itself, before the first step, and said why."""
    assert done.returncode > 0, (done.returncode, done.stderr)
    assert "step 4" not in done.stdout
    for part in parts:
        assert part in done.stderr


def test_the_rows_of_training_are_never_the_test_split(train, pack):
    folder = pack("single")
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps(state | {"_split": None}))
    done = train(folder)
    assert done.returncode == 0, done.stderr
    assert "accuracy" not in done.stdout
    assert "no split test or validation" in done.stdout


def test_a_folder_that_is_only_a_test_split_is_not_trained_on(train, pack):
    folder = pack("single")
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps(state | {"_split": "test"}))
    refused(train(folder), "no split 'train'")


def test_validation_is_taken_where_there_is_no_test_split_and_named(train, pack, tmp_path):
    done = train(join(tmp_path / "data", train=pack("a"), validation=pack("b", count=5)))
    assert done.returncode == 0, done.stderr
    assert "validation accuracy=" in done.stdout and "samples=10" in done.stdout


def test_the_split_to_evaluate_can_be_chosen(train, pack, tmp_path):
    data = join(tmp_path / "data", train=pack("a"), test=pack("b", count=5), other=pack("c", count=7))
    done = train(data, "--eval-split", "other")
    assert "other accuracy=" in done.stdout and "samples=14" in done.stdout
    refused(train(data, "--eval-split", "absent"), "absent")


def test_splits_with_other_classes_are_refused_and_the_class_is_named(train, pack, tmp_path):
    data = join(tmp_path / "data", train=pack("a"), test=pack("b", classes=("cat", "dog", "eel")))
    refused(train(data), "test", "eel")
    data = join(tmp_path / "swapped", train=pack("c"), test=pack("d", classes=("cat", "cow")))
    done = train(data)
    refused(done, "dog", "cow")
    assert done.returncode == 1, "what was typed is right, what the files hold is not"


@pytest.mark.parametrize(
    ("images", "what"),
    [({"colour_from": 8}, "3 channels"), ({"grey_from": 8}, "1 channel"), ({"grey_from": 1}, "1 ch")],
)
def test_grey_and_colour_in_one_set_need_a_choice_whichever_comes_first(train, pack, images, what):
    folder = pack("mixed", **images)
    done = train(folder)
    refused(done, "choose for all of them: --channels 3 or --channels 1")
    assert done.returncode == 1
    assert re.search(rf"batch 0, row \d+: the image has {what}", done.stderr)
    for channels in (1, 3):
        assert train(folder, "--channels", channels).returncode == 0
    refused(train(folder, "--channels", 2), "--channels")


def test_an_image_of_another_size_is_refused_before_the_first_step(train, pack, tmp_path):
    for name, larger_from, row in (("late", 15, 15), ("first", 1, 1)):
        done = train(pack(name, larger_from=larger_from))
        refused(done, f"batch 0, row {row}: the image has 28 × 28 pixels, the first one of train has 14 × 14", "resize")
        assert done.returncode == 1 and done.stdout == ""
    done = train(join(tmp_path / "data", train=pack("a"), test=pack("b", larger_from=7)))
    refused(done, "test/data-00000-of-00001.arrow, batch 0, row 7: the image has 28 × 28 pixels")
    assert done.returncode == 1 and done.stdout == ""


def flip_a_bit_of_the_last_image(folder: pathlib.Path):
    (shard,) = folder.glob("*.arrow")
    content = bytearray(shard.read_bytes())
    content[content.rindex(b"IDAT") + 6] ^= 1
    shard.write_bytes(content)


BAD_SETS = {
    "flipped bit": ({}, flip_a_bit_of_the_last_image, "batch 0, row 31: the image is damaged: CRC32C is"),
    "another size": ({"larger_from": 15}, None, "the image has 28 × 28 pixels, the first one of train has 14 × 14"),
    "colour": ({"colour_from": 15}, None, "the image has 3 channels, the first one of the set has 1"),
    "grey": ({"grey_from": 15}, None, "the image has 1 channel, the first one of the set has 3"),
}


@pytest.mark.parametrize("name", BAD_SETS)
def test_a_refusal_of_the_data_stands_and_no_restart_is_tried(muster, pack, tmp_path, name):
    images, damage, said = BAD_SETS[name]
    folder = pack("set", **images)
    if damage:
        damage(folder)
    words = small_but("--data", folder, "--steps", 2)
    done = muster("run", "-n", 2, "--run-dir", "run", "--", "muster-train", "vit", *words)
    assert done.code == 1, done.err
    assert said in done.err and "another start would end in the same way" in done.err, done.err
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["restarts"], result["steps"]) == (0, 0)


def test_a_refusal_stands_in_whatever_generation_comes_to_it(programs, pack, tmp_path):
    # As generation 2, on the page of one that was killed before it looked, or had done a step.
    folder = pack("set", larger_from=15)
    command = [programs / "muster-train", "vit", *small_but("--data", folder)]
    for steps_of_page in (0, 1):
        page = make_heartbeat_page(steps_of_page)
        try:
            done = subprocess.run(
                [str(word) for word in command],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                pass_fds=[page],
                env=os.environ | {"MUSTER_GENERATION": "2", "MUSTER_HEARTBEAT_FD": str(page)},
                timeout=60,
            )
            phase = struct.unpack("<Q", os.pread(page, 8, 72))[0] & 15
        finally:
            os.close(page)
        if steps_of_page == 0:
            assert done.returncode == 1 and "the image has 28 × 28 pixels" in done.stderr, done.stderr
            assert phase == 9
        else:
            assert "the first one of train" not in done.stderr
            assert phase != 9


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--seed", 2), 1, "is of a run with seed 0"),
        (("--width", 32), 1, "has shape [16, 49] in the checkpoint"),
        (("--data", "absent"), 3, "absent"),
        (("--patch", 5), 2, "patch 5 does not divide"),
    ],
)
def test_what_a_run_is_given_and_cannot_take_is_refused_once(muster, train, data, tmp_path, words, code, said):
    assert train(data, "--checkpoint-dir", "c").returncode == 0
    words = small_but(*(() if "--data" in words else ("--data", data)), *words)
    run = ("run", "-n", 2, "--run-dir", "run", "--checkpoint-dir", tmp_path / "c", "--", "muster-train", "vit")
    done = muster(*run, *words)
    assert done.code == code, done.err
    assert said in done.err and "not started again" in done.err, done.err
    assert json.loads((tmp_path / "run" / "result.json").read_text())["restarts"] == 0


@pytest.mark.parametrize(("patch", "works"), [(5, 7), (3, 2), (65536, 7)])
def test_a_patch_that_does_not_fit_is_refused_with_one_that_does(train, data, patch, works):
    done = train(data, "--patch", patch)
    refused(done, f"patch {patch} does not divide images of 14 × 14 pixels", f"--patch {works} divides them")
    assert done.returncode == 2
    assert train(data, "--patch", works).returncode == 0


def test_a_batch_of_more_than_there_is_is_a_mistake_of_the_command_line(train, pack):
    done = train(pack("few", count=6), "--batch", 16)
    refused(done, "--batch must be at most the 12 rows of the split train, it is 16")
    assert done.returncode == 2


def test_one_class_is_too_few_whatever_the_flags(train, pack):
    done = train(pack("one", classes=("cat",)))
    refused(done, "names 1 class: two are the least")
    assert done.returncode == 1


@pytest.mark.parametrize(
    "words",
    [
        ("--warm-up", -0.1),
        ("--warm-up", 1.5),
        ("--warm-up", "nan"),
        ("--lr", "inf"),
        ("--lr", 0),
        ("--weight-decay", "inf"),
        ("--weight-decay", -1),
        ("--beta1", 1),
        ("--beta2", "nan"),
        ("--clip-norm", "inf"),
        ("--label-smoothing", -0.1),
        ("--crop-fraction", 2),
        ("--crop-padding", 4000000000),
        ("--width", 2**40),
        ("--blocks", 0),
        ("--heads", -4),
        ("--mlp-ratio", 2**40),
        ("--patch", 0),
        ("--steps", 0),
        ("--steps", 10**15),
        ("--batch", 0),
        ("--decode-threads", 10**6),
        ("--overlap", "perhaps"),
    ],
)
def test_a_number_out_of_range_is_refused_by_the_name_of_its_flag(train, data, words):
    done = train(data, *words)
    refused(done, words[0])
    assert done.returncode == 2


def test_a_step_that_is_evaluated_again_after_a_restart_has_one_line(train, data, tmp_path):
    (tmp_path / "run").mkdir()
    scores = tmp_path / "run" / "eval.jsonl"
    words = ("--checkpoint-dir", "c", "--checkpoint-every", 2, "--eval-every", 1)
    for again in range(3):
        done = train(data, *words, MUSTER_RUN=str(tmp_path / "run"))
        assert done.returncode == 0 and "step=4" in done.stdout, done.stderr
        assert [json.loads(line)["step"] for line in scores.read_text().splitlines()] == [1, 2, 3, 4], again
    # Two steps are done again, and a line was torn off.
    shutil.rmtree(tmp_path / "c" / "step-000000000004")
    scores.write_text(scores.read_text()[:-20])
    assert train(data, *words, MUSTER_RUN=str(tmp_path / "run")).returncode == 0
    assert [json.loads(line)["step"] for line in scores.read_text().splitlines()] == [1, 2, 3, 4]


def test_the_folder_of_checkpoints_is_made_with_its_parents(train, data, tmp_path):
    done = train(data, "--checkpoint-dir", "some/where/deep")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "some/where/deep/step-000000000004/manifest.json").exists()


@pytest.mark.parametrize(
    "every, under_muster, said",
    [
        (3, True, None),
        (4, False, "no checkpoint before the last step, 4: there is one each 4 steps"),
        (0, True, "no checkpoint before the last step, 4: --checkpoint-every N saves in between"),
        (0, False, None),
    ],
)
def test_a_run_that_saves_only_at_its_end_says_so_at_its_start(train, data, tmp_path, every, under_muster, said):
    environment = {"MUSTER_RUN": str(tmp_path)} if under_muster else {}
    done = train(data, "--checkpoint-dir", tmp_path / "saved", "--checkpoint-every", every, **environment)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("no checkpoint before")]
    assert lines == ([said] if said else [])


def test_a_folder_that_cannot_be_written_is_found_before_training(train, data, tmp_path):
    (tmp_path / "file").write_text("")
    for folder in ("file", "file/inside", "/proc/muster/inside"):
        done = train(data, "--checkpoint-dir", folder, "--log-every", 1)
        refused(done, folder)
        assert "step 1 " not in done.stdout


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--heads", 8), ("heads", "4", "8")),
        (("--label-smoothing", 0.1), ("label_smoothing", "0.1")),
        (("--flip",), ("flip", "false", "true")),
        (("--crop-padding", 2), ("crop_padding", "1", "2")),
        (("--crop-fraction", 0.25), ("crop_fraction", "0.5", "0.25")),
    ],
)
def test_a_checkpoint_of_another_function_is_refused_by_the_name_of_the_difference(train, data, words, parts):
    assert train(data, "--checkpoint-dir", "c").returncode == 0
    refused(train(data, "--checkpoint-dir", "c", *words), *parts)
    done = train(data, "--checkpoint-dir", "c", "--lr", 1e-3)  # what may change does not change the function
    assert done.returncode == 0, done.stderr


def test_a_second_run_in_one_folder_is_refused_and_told_who_holds_it(train, train_command, data, tmp_path, wait_until):
    command = train_command(data, "--checkpoint-dir", "c", "--checkpoint-every", 1, "--steps", 1000000)
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        wait_until((tmp_path / "c" / "latest").exists, "a checkpoint")
        refused(train(data, "--checkpoint-dir", "c"), "in use", f"pid {first.pid}")
        assert first.poll() is None
    finally:
        first.kill()
        first.wait()
    (tmp_path / "c" / "step-000000000002.dead.g7.tmp").mkdir()
    (tmp_path / "c" / "step-000000000002.g7.tmp").mkdir()
    done = train(data, "--checkpoint-dir", "c", "--steps", 1000000, "--crop-padding", 2)
    refused(done, "crop_padding")  # the lock went with its holder
    assert not list((tmp_path / "c").glob("*.tmp"))


def test_a_damaged_newest_checkpoint_is_passed_over_and_named(train, muster, data, tmp_path):
    words = ("--checkpoint-dir", "c", "--checkpoint-every", 2)
    assert train(data, *words, "--steps", 6).returncode == 0
    want = muster("ckpt", "digest", "c", "--json").json()["checkpoints"][0]["digest"]
    victim = tmp_path / "c/step-000000000006/rank-00000-of-00001.safetensors"
    content = bytearray(victim.read_bytes())
    content[-1000] ^= 1
    victim.write_bytes(content)
    (tmp_path / "c/step-000000000004/manifest.json").unlink()

    done = train(data, *words, "--steps", 6)
    assert done.returncode == 0, done.stderr
    assert "resuming at step 2" in done.stdout
    assert str(pathlib.Path("c/step-000000000006") / victim.name) in done.stderr
    assert "step-000000000004" in done.stderr
    got = muster("ckpt", "digest", "c", "--json")
    assert got.json()["checkpoints"][0]["digest"] == want
    assert muster("ckpt", "verify", "c", "--json").json()["ok"] is True

    for step in ("2", "4", "6"):
        (tmp_path / f"c/step-{step:0>12}/manifest.json").write_text("{}")
    refused(train(data, *words, "--steps", 6), "step-000000000006")


def test_overlap_changes_no_bit(muster, data, tmp_path):
    for overlap in ("on", "off", "auto"):
        words = small_but("--data", data, "--overlap", overlap, "--checkpoint-dir", tmp_path / f"c-{overlap}")
        done = muster("run", "-n", 2, "--run-dir", overlap, "--quiet", "--", "muster-train", "vit", *words)
        assert done.code == 0, done.err
    done = muster("ckpt", "digest", "c-on", "c-off", "c-auto")
    assert done.code == 0 and done.out.endswith("bitwise equal\n"), done.out


def test_a_killed_rank_0_leaves_its_folder_to_the_next_generation(muster, programs, data, tmp_path, wait_until):
    words = small_but("--data", data, "--steps", 400, "--checkpoint-every", 20)
    steps = tmp_path / "hurt/steps/rank-0.jsonl"

    def command(run):
        return ["run", "-n", "2", "--run-dir", run, "--", "muster-train", "vit", *words, "--checkpoint-dir", f"{run}-c"]

    hurt = subprocess.Popen(
        [programs / "muster", *command("hurt")],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: steps.exists() and steps.read_text().count("\n") > 50, "step 50")
        started = [json.loads(line) for line in (tmp_path / "hurt/events.jsonl").read_text().splitlines()]
        (pid,) = (e["pid"] for e in started if e["event"] == "worker_started" and e["rank"] == 0)
        os.kill(pid, signal.SIGKILL)
        _, err = hurt.communicate(timeout=60)
    finally:
        hurt.kill()
    assert hurt.returncode == 0, err
    assert json.loads((tmp_path / "hurt/result.json").read_text())["restarts"] == 1
    assert not list((tmp_path / "hurt-c").glob("*.tmp"))
    assert muster(*command("whole")).code == 0
    done = muster("ckpt", "digest", "hurt-c", "whole-c")
    assert done.out.endswith("bitwise equal\n"), done.out


@pytest.fixture
def begin(programs, data, tmp_path):
    """begin(name, flags of muster run, flags of the trainer) → a run of two ranks that saves every fifth step."""
    started = []

    def start(name: str, run_flags=(), *words) -> subprocess.Popen:
        train = small_but("--data", data, "--steps", 2000, "--checkpoint-every", 5, *words)
        command = [programs / "muster", "run", "-n", 2, "--run-dir", name, *run_flags, "--", "muster-train", "vit"]
        process = subprocess.Popen(
            [str(word) for word in (*command, *train)],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def ended(process: subprocess.Popen, folder: pathlib.Path) -> tuple[int, str, dict]:
    _, err = process.communicate(timeout=60)
    return process.returncode, err, json.loads((folder / "fault.json").read_text())


@pytest.mark.parametrize("time", range(10))
def test_a_save_that_rank_0_is_refused_is_always_the_fault_of_rank_0(begin, tmp_path, wait_until, time):
    run = begin("refused", ("--max-restarts", 0))
    folder = tmp_path / "refused"
    wait_until((folder / "checkpoints/latest").exists, "a checkpoint")
    (folder / "generation").write_text("99\n")
    code, err, fault = ended(run, folder)
    assert (code, fault["rank"]) == (5, 0), err
    assert "generation 99 has taken over" in err


def write_manifest(folder: pathlib.Path, text: str):
    (folder / "manifest.json").write_text(text)
    (folder / "manifest.crc32c").write_text(f"{crc32c(text.encode()):08x}\n")


@pytest.fixture
def checkpoints(train, data, tmp_path) -> pathlib.Path:
    """Steps 2 and 4 of one run."""
    assert train(data, "--checkpoint-dir", "c", "--checkpoint-every", 2).returncode == 0
    return tmp_path / "c"


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("slice", lambda m: m["files"][0]["slices"][1].update(data_offset=8), "other data than manifest.json"),
        ("optimizer", lambda m: m.update(optimizer_step=10**18), "optimizer_step"),
        ("no blocks", lambda m: m.pop("block_bytes"), "block_bytes"),
        ("blocks", lambda m: m.update(block_bytes=0), "block_bytes"),
        ("step", lambda m: m.update(step=5), "step 5"),
    ],
)
def test_a_changed_manifest_with_right_checksums_is_refused_by_every_reader(
    train, muster, data, checkpoints, name, change, said
):
    newest = checkpoints / "step-000000000004"
    manifest = json.loads((newest / "manifest.json").read_text())
    change(manifest)
    write_manifest(newest, json.dumps(manifest))
    for words in (("verify", newest), ("digest", newest), ("diff", newest, newest), ("export", newest, "x")):
        done = muster("ckpt", *words)
        assert done.code == 1, (words, done)
        assert said in done.out + done.err and str(newest) in done.out + done.err, (words, done)
    done = train(data, "--checkpoint-dir", "c", "--steps", 4)
    assert done.returncode == 0, done.stderr
    assert "resuming at step 2" in done.stdout and said in done.stderr


@pytest.mark.parametrize("state", ["garbage", "", "loader/1 dataset=x"])
def test_a_loader_state_that_is_none_is_damage_of_that_checkpoint(train, data, checkpoints, state):
    for step, left in (("4", "resuming at step 2"), ("2", "")):
        folder = checkpoints / f"step-{step:0>12}"
        manifest = json.loads((folder / "manifest.json").read_text()) | {"loader_state": state}
        write_manifest(folder, json.dumps(manifest))
        done = train(data, "--checkpoint-dir", "c", "--steps", 3)
        assert "step-000000000004/manifest.json: loader_state: " in done.stderr
        assert left in done.stdout
        assert done.returncode == (0 if left else 1)
        shutil.rmtree(checkpoints / "step-000000000003", ignore_errors=True)


def test_a_loader_state_of_another_step_is_refused(train, data, checkpoints):
    folder = checkpoints / "step-000000000004"
    text = (folder / "manifest.json").read_text()
    write_manifest(folder, re.sub(r"samples=\d+", "samples=16", re.sub(r"epoch=\d+", "epoch=7", text)))
    done = train(data, "--checkpoint-dir", "c", "--steps", 6)
    refused(done, "step 4", "epoch=7")
    assert done.returncode == 1


def test_what_is_saved_after_a_renamed_checkpoint_is_found_again(train, data, checkpoints):
    (checkpoints / "step-000000000004").rename(checkpoints / "step-000000000050")
    for steps, start in ((6, "resuming at step 2"), (8, "resuming at step 6")):
        done = train(data, "--checkpoint-dir", "c", "--checkpoint-every", 2, "--steps", steps)
        assert done.returncode == 0 and start in done.stdout, (done.stdout, done.stderr)
        assert "step-000000000050 is named for step 50, but" in done.stderr


@pytest.mark.parametrize("steps", [2, 4])
def test_a_run_that_is_finished_says_so(train, data, checkpoints, steps):
    done = train(data, "--checkpoint-dir", "c", "--steps", steps)
    assert done.returncode == 0
    assert f"nothing left to train: the newest checkpoint is of step 4, --steps is {steps}" in done.stdout
    assert "resuming" not in done.stdout


@pytest.mark.parametrize(
    "flag",
    [
        "steps",
        "batch",
        "channels",
        "seed",
        "decode-threads",
        "log-every",
        "eval-every",
        "checkpoint-every",
        "keep",
        "patch",
        "width",
        "blocks",
        "heads",
        "mlp-ratio",
        "crop-padding",
    ],
)
def test_a_whole_number_is_not_wrapped_or_cut(train, data, flag):
    for value in ("-1", "99999999999999999999", "1.5", "1e3", "0x10", ""):
        done = train(data, f"--{flag}={value}")
        assert done.returncode == 2, (value, done.stdout, done.stderr)
        assert f"--{flag}" in done.stderr, (value, done.stderr)


def test_export_needs_a_name(muster, checkpoints):
    done = muster("ckpt", "export", "c", "")
    assert done.code == 2 and "names no file" in done.err and "safetensors" in done.err


def two_ranks(muster, data, name, *words):
    flags = small_but("--data", data, "--checkpoint-dir", "c", *words)
    return muster("run", "-n", 2, "--run-dir", name, "--", "muster-train", "vit", *flags)


def test_two_ranks_pass_over_a_damaged_newest_checkpoint(muster, data, checkpoints, tmp_path):
    victim = checkpoints / "step-000000000004/rank-00000-of-00001.safetensors"
    victim.write_bytes(victim.read_bytes()[:-1] + b"\xff\xff")
    done = two_ranks(muster, data, "r", "--steps", 6)
    assert done.code == 0, done.err
    assert "resuming at step 2" in done.out
    assert victim.name in done.err and "passed over" in done.err
    assert json.loads((tmp_path / "r/result.json").read_text())["restarts"] == 0


def test_two_ranks_with_nothing_intact_fail_and_say_what_is_damaged(muster, data, checkpoints, tmp_path):
    for folder in checkpoints.glob("step-*"):
        (folder / "manifest.json").write_text("{}")
    done = two_ranks(muster, data, "r", "--steps", 6)
    assert done.code == 1, done.err
    assert "none of the 2 checkpoints in" in done.err and "step-000000000004/manifest.json" in done.err
    assert "ckpt verify" in done.err


def test_two_ranks_refuse_a_foreign_model_and_name_the_difference(muster, data, checkpoints, tmp_path):
    done = two_ranks(muster, data, "r", "--steps", 6, "--width", 32)
    assert done.code == 1, done.err
    assert "shape" in done.err and "in the checkpoint and" in done.err
    assert (checkpoints / "step-000000000004/manifest.json").exists()


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        (["vitt"], "unknown recipe 'vitt': did you mean 'vit'?", "run 'muster-train help' for the recipes"),
        (["vit", "--stpes", "5"], "unknown option --stpes: did you mean --steps?", "run 'muster-train help vit'"),
        (["vit", "--steps", "many"], "--steps takes a whole number, not 'many'", "run 'muster-train help vit'"),
        ([], "muster-train needs a recipe", "one of vit"),
    ],
)
def test_a_word_that_the_trainer_does_not_know_gets_a_near_miss(programs, words, first, last):
    done = subprocess.run([programs / "muster-train", *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    said = done.stderr.splitlines()
    assert said[0] == f"muster-train: {first}" and said[1].strip().startswith(last) and len(said) == 2


def test_every_option_of_a_recipe_has_a_text_and_a_default(programs):
    helped = subprocess.run([programs / "muster-train", "help", "vit"], capture_output=True, text=True)
    assert helped.returncode == 0 and helped.stderr == ""
    assert max(map(len, helped.stdout.splitlines())) <= 80
    whole = re.sub(r"\n {8,}", " ", helped.stdout)  # a long text goes on below its own column
    options = [line for line in whole.splitlines() if re.match(r"  -", line)]
    assert len(options) > 25
    for line in options:
        name, _, text = line.strip().partition("  ")
        assert len(text.strip()) > 10, line
        assert "=" in name or "default" in text or "help" in name, line


def test_the_version_is_that_of_muster(programs, muster):
    def told(*words):
        return subprocess.run([programs / "muster-train", *words], capture_output=True, text=True, timeout=60)

    assert told("--version").stdout == muster("--version").out
    assert json.loads(told("--version", "--json").stdout) == muster("--version", "--json").json()
    assert "--version" in told("--help").stdout
    assert told("vit", "--version").returncode == 2

"""Text of other people's files must not drive the terminal of whoever looks at them."""

import json
import pathlib
import shutil
import unicodedata

import pytest
from checksums import crc32c

# Clears the screen, sets the title, an eight-bit control sequence, rewrites the line, forges another one.
HOSTILE = "x\x1b[2J\x1b]0;owned\x07\u009b31m\rfaked\nfaked line\x7f"
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "checkpoint" / "step-000000000003"


def is_harmless(text: str) -> bool:
    controls = [c for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    return not controls and not any(line.startswith("faked") for line in text.splitlines())


def write_checkpoint(folder: pathlib.Path, step: int, width: int) -> pathlib.Path:
    target = folder / f"step-{step:012}"
    shutil.copytree(GOLDEN, target)
    manifest = json.loads((target / "manifest.json").read_text())
    manifest |= {"step": step, "model": HOSTILE, "created_utc": HOSTILE, "loader_state": HOSTILE}
    manifest["environment"] = {HOSTILE: HOSTILE}
    manifest["config"] = {"width": width, "name": HOSTILE}
    text = json.dumps(manifest).encode()
    (target / "manifest.json").write_bytes(text)
    (target / "manifest.crc32c").write_text(f"{crc32c(text):08x}\n")
    return target


def write_run(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir()
    facts = {"format": "muster-run/1", "id": HOSTILE, "name": HOSTILE, "version": HOSTILE, "host": HOSTILE, "pid": 1}
    facts |= {"created_utc": HOSTILE, "created_ns": 1, "ranks": 1, "seed": 1}
    (folder / "run.json").write_text(json.dumps(facts))
    result = {"format": "muster-result/1", "state": "FAILED", "exit_code": 1, "reason": HOSTILE, "ended_ns": 2}
    (folder / "result.json").write_text(json.dumps(result))
    events = [
        {"t_ns": 1, "event": "worker_exited", "gen": 1, "rank": 0, "signal": HOSTILE, "cause": "fault"},
        {"t_ns": 2, "event": "fault", "gen": 1, "rank": 0, "cause": HOSTILE},
        {"t_ns": 2, "event": "log_dropped", "rank": 0, "stream": HOSTILE, "bytes": 3},
    ]
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


@pytest.mark.parametrize("verb", ["show", "report"])
def test_a_run_folder_cannot_drive_the_terminal(muster, tmp_path, verb):
    done = muster(verb, write_run(tmp_path / "run"))
    assert done.code == 0 and "FAILED" in done.out + done.err
    assert is_harmless(done.out) and is_harmless(done.err), repr(done.out + done.err)


def test_a_run_folder_that_is_refused_cannot_either(muster, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(json.dumps({"format": HOSTILE}))
    done = muster("show", tmp_path / "run")
    assert done.code != 0 and "reads muster-run/1" in done.err
    assert not [c for c in done.err if unicodedata.category(c) == "Cc" and c != "\n"], repr(done.err)


@pytest.mark.parametrize("words", [["ls", "."], ["show", "a"], ["verify", "a"], ["digest", "a", "b"]])
def test_a_checkpoint_cannot_drive_the_terminal(muster, tmp_path, words):
    write_checkpoint(tmp_path, 3, 1).rename(tmp_path / "a")
    write_checkpoint(tmp_path, 3, 2).rename(tmp_path / "b")
    write_checkpoint(tmp_path, 3, 3)
    done = muster("ckpt", *words)
    assert done.code in (0, 1) and done.out, done.err
    assert is_harmless(done.out) and is_harmless(done.err), repr(done.out + done.err)


def test_a_dataset_cannot_drive_the_terminal(muster, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    folder = tmp_path / "set"
    folder.mkdir()
    image = pyarrow.array(
        [{"bytes": b"no image", "path": HOSTILE}],
        pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())]),
    )
    table = pyarrow.table({"image": image, "label": [0], HOSTILE: pyarrow.array([1])})
    with pyarrow.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as writer:
        writer.write_table(table)
    features = {
        "image": {"_type": "Image"},
        "label": {"names": [HOSTILE], "_type": "ClassLabel"},
        HOSTILE: {"dtype": "int64", "_type": "Value"},
    }
    (folder / "dataset_info.json").write_text(json.dumps({"features": features, "splits": {}}))
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": "train", "_fingerprint": "0"}
    (folder / "state.json").write_text(json.dumps(state))
    for words in (["ls", "set"], ["verify", "set"]):
        done = muster("data", *words)
        assert "train" in done.out or "rows" in done.out, done.err
        assert is_harmless(done.out) and is_harmless(done.err), repr(done.out + done.err)

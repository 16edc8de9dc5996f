"""muster ckpt: where a user's words lead, and what is told of checkpoints that are damaged, absent or apart."""

import json
import pathlib
import shutil

import pytest
from checksums import crc32c

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "checkpoint"
STEP = "step-000000000003"
JOB = """apiVersion: muster/v1
kind: Job
metadata: {{name: x}}
spec:
  command: {command}
  checkpoint: {{dir: {folder}}}
"""


def write_run(folder: pathlib.Path, saves_to: str, command="[python, t.py]") -> pathlib.Path:
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    (folder / "job.yaml").write_text(JOB.format(folder=saves_to, command=command))
    return folder


def with_other_value(folder: pathlib.Path):
    """Changes the last byte of the first rank's data, every checksum made right again."""
    step = folder / STEP
    manifest = json.loads((step / "manifest.json").read_text())
    stored = manifest["files"][0]
    raw = bytearray((step / stored["name"]).read_bytes())
    head, data = raw[: stored["header_bytes"]], raw[stored["header_bytes"] :]
    data[-1] ^= 1
    old, new = stored["crc32c"][0], crc32c(bytes(data))
    assert len(stored["crc32c"]) == 1 and b"%08x" % old in head
    head = head.replace(b"%08x" % old, b"%08x" % new)
    stored |= {"crc32c": [new], "header_crc32c": crc32c(bytes(head))}
    (step / stored["name"]).write_bytes(head + data)
    text = json.dumps(manifest).encode()
    (step / "manifest.json").write_bytes(text)
    (step / "manifest.crc32c").write_text(f"{crc32c(text):08x}\n")


@pytest.mark.parametrize("saves_to", ["checkpoints", "deep/er", "{tmp}/elsewhere"])
@pytest.mark.parametrize("verb", ["ls", "show", "verify", "digest", "export", "diff"])
def test_a_run_folder_leads_to_where_its_job_saves(muster, tmp_path, verb, saves_to):
    saves_to = saves_to.format(tmp=tmp_path)
    run = write_run(tmp_path / "run", saves_to)
    shutil.copytree(GOLDEN, run / saves_to)
    more = {"export": ["out.safetensors"], "diff": ["run"]}.get(verb, [])
    done = muster("ckpt", verb, "run", *more)
    assert done.code == 0, done.err
    assert ("golden" in done.out) if verb == "ls" else (STEP in done.out + done.err or "equal" in done.out)


@pytest.mark.parametrize("flag", ["--checkpoint-dir, {tmp}/c", "--checkpoint-dir={tmp}/c"])
def test_a_trainers_own_flag_goes_before_the_jobs_key(muster, tmp_path, flag):
    write_run(tmp_path / "run", "checkpoints", f"[muster-train, vit, {flag.format(tmp=tmp_path)}]")
    shutil.copytree(GOLDEN, tmp_path / "c")
    assert str(tmp_path / "c" / STEP) in muster("ckpt", "digest", "run").out


def test_a_trainers_relative_flag_is_not_guessed_at(muster, tmp_path):
    write_run(tmp_path / "run", "checkpoints", "[muster-train, vit, --checkpoint-dir, c]")
    done = muster("ckpt", "digest", "run")
    assert done.code == 1 and "--checkpoint-dir c" in done.err and "name that folder" in done.err


def test_a_run_that_has_not_saved_says_where_it_would(muster, tmp_path):
    write_run(tmp_path / "run", "/no/such/place")
    done = muster("ckpt", "ls", "run")
    assert (done.code, done.out) == (0, "") and "/no/such/place" in done.err
    assert muster("ckpt", "ls", "run", "--json").json() == {"folder": "/no/such/place", "checkpoints": []}
    done = muster("ckpt", "digest", "run")
    assert done.code == 3 and "/no/such/place, which does not exist" in done.err


def test_a_damaged_job_file_of_a_run_is_told(muster, tmp_path):
    run = write_run(tmp_path / "run", "checkpoints")
    (run / "job.yaml").write_text("spec: [")
    done = muster("ckpt", "ls", "run")
    assert done.code == 1 and "job.yaml:1" in done.err and "name the folder of checkpoints itself" in done.err


@pytest.mark.parametrize("verb", ["ls", "show", "verify", "digest"])
def test_what_is_absent_is_named_by_its_absolute_path(muster, tmp_path, verb):
    done = muster("ckpt", verb, "nosuch")
    assert (done.code, done.out) == (3, "")
    assert f"there is no checkpoint, folder of checkpoints or run folder at {tmp_path}/nosuch\n  " in done.err


@pytest.mark.parametrize("slash", ["", "/"])
def test_ls_of_one_checkpoint_names_the_verb_for_it(muster, tmp_path, slash):
    shutil.copytree(GOLDEN, tmp_path / "c")
    done = muster("ckpt", "ls", f"c/{STEP}{slash}")
    assert (done.code, done.out) == (1, "")
    assert f"{tmp_path}/c/{STEP}{slash} is one checkpoint, not a folder of them\n" in done.err
    assert f"'muster ckpt show c/{STEP}{slash}'" in done.err and f"'muster ckpt ls {tmp_path}/c'" in done.err
    (tmp_path / "c" / STEP / "manifest.json").unlink()
    refused = muster("ckpt", "ls", f"c/{STEP}{slash}", "--json")
    assert refused.code == 1 and refused.json()["error"]["code"] == "precondition"


@pytest.mark.parametrize("verb", ["ls", "show", "verify", "digest"])
def test_a_file_in_a_checkpoint_leads_to_its_folder(muster, tmp_path, verb):
    shutil.copytree(GOLDEN, tmp_path / "c")
    done = muster("ckpt", verb, f"c/{STEP}/manifest.json")
    assert (done.code, done.out) == (1, "")
    assert (
        f"manifest.json is a file; checkpoints and runs are folders\n  name the folder that it is in: {tmp_path}/c/{STEP}\n"
        in done.err
    )


@pytest.mark.parametrize("verb", ["show", "verify", "digest"])
def test_a_folder_above_says_that_it_holds_no_checkpoint(muster, tmp_path, verb):
    shutil.copytree(GOLDEN, tmp_path / "above" / "c")
    done = muster("ckpt", verb, "above")
    assert done.code == 3 and f"{tmp_path}/above holds no committed checkpoint\n" in done.err
    assert "give a step-… folder, or a folder that holds some" in done.err


def test_damage_is_told_in_sentences(muster, tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "c")
    assert muster("ckpt", "verify", "c").out.endswith(f"{STEP} is whole: 656 B in 2 files hold their checksums\n")
    victim = tmp_path / "c" / STEP / "rank-00001-of-00002.safetensors"
    victim.write_bytes(victim.read_bytes()[:-1] + b"\xff")
    done = muster("ckpt", "verify", "c")
    assert done.code == 1 and "is damaged in 1 place, told above" in done.out
    victim.unlink()
    assert muster("ckpt", "ls", "c").out.endswith("1 of 1 checkpoint is damaged; a run that resumes passes over it\n")


def test_a_later_version_is_not_called_damage(muster, tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "c")
    shutil.copytree(GOLDEN / STEP, tmp_path / "c" / "step-000000000004")
    manifest = tmp_path / "c" / "step-000000000004" / "manifest.json"
    text = json.dumps(json.loads(manifest.read_text()) | {"format": "muster-checkpoint/9", "step": 4})
    manifest.write_text(text)
    manifest.with_name("manifest.crc32c").write_text(f"{crc32c(text.encode()):08x}\n")

    want = "the checkpoint has format muster-checkpoint/9, this program reads muster-checkpoint/1"
    done = muster("ckpt", "ls", "c")
    assert f"4  cannot be used: c/step-000000000004/manifest.json: {want}; use the version of muster" in done.out
    assert done.out.endswith("1 of 2 checkpoints cannot be used here; a run that comes to it ends there\n")
    assert "is damaged" not in done.out
    rows = muster("ckpt", "ls", "c", "--json").json()["checkpoints"]
    assert want in rows[1]["refusal"] and "damage" not in rows[1] and "refusal" not in rows[0]
    for verb in ("show", "verify", "digest"):
        done = muster("ckpt", verb, "c", "--json")
        assert (done.code, done.json()["error"]["code"]) == (1, "precondition"), verb
        assert "use the version of muster that wrote it" in done.json()["error"]["hint"]


def test_diff_begins_with_what_it_comes_to(muster, tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "a")
    shutil.copytree(GOLDEN, tmp_path / "b")
    done = muster("ckpt", "diff", "a", "b")
    assert (done.code, done.out) == (0, "4 tensors, bitwise equal\n")
    with_other_value(tmp_path / "b")
    done = muster("ckpt", "diff", "a", "b")
    first, second, *table = done.out.splitlines()
    assert done.code == 1, done.err
    assert first == "4 tensors: 3 equal, 1 differs"
    assert second.startswith("largest difference: ") and " at element " in second
    assert len(table) == 2
    document = muster("ckpt", "diff", "a", "b", "--json").json()
    assert document["summary"] | {"largest": None} == {
        "tensors": 4, "equal": 3, "differ": 1, "other_shape": 0, "only_a": 0, "only_b": 0, "largest": None,
    }  # fmt: skip
    assert document["summary"]["largest"] == document["tensors"][0] and document["left_out"] == 0


def test_one_name_for_a_group_in_every_verb(muster, tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "c")
    assert muster("ckpt", "digest", "c", "--group", "param", "--json").json()["group"] == "param"
    assert muster("ckpt", "diff", "c", "c", "--group", "param").out == "2 tensors, bitwise equal\n"
    assert muster("ckpt", "export", "c", "x", "--group", "exp_avg_sq").code == 0
    for words in (["digest", "c"], ["diff", "c", "c"], ["export", "c", "y"]):
        done = muster("ckpt", *words, "--group", "parm")
        assert done.code == 3 and "no group 'parm'" in done.err and "param" in done.err
    assert muster("ckpt", "export", "c", "y", "--group", "all").code == 2

"""Where the parent closed stdin, stdout or stderr, no file of ours takes their place and gets what was meant for the user."""

import json
import os
import subprocess

import pytest
from checksums import crc32c


def closing(*descriptors):
    def prepare():
        for descriptor in descriptors:
            os.close(descriptor)

    return prepare


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_a_run_writes_its_workers_output_nowhere_else(programs, tmp_path, closed):
    command = [
        programs / "muster",
        "run",
        "--run-dir",
        "run",
        "-n",
        "2",
        "--",
        "sh",
        "-c",
        "echo wo''rd; echo wo''rd >&2",
    ]
    done = subprocess.run(command, cwd=tmp_path, preexec_fn=closing(*closed), timeout=60)
    assert done.returncode == 0
    logs = {path for path in (tmp_path / "run").rglob("*") if path.is_file() and b"word" in path.read_bytes()}
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    job_sum = crc32c((tmp_path / "run" / "job.yaml").read_bytes())
    # One object and nothing behind it: the lock is opened first, and would take the place that was closed.
    assert json.loads((tmp_path / "run" / "lock").read_text()) == facts | {"job_crc32c": job_sum}
    assert {path.parent.parent.name for path in logs if path.suffix == ".log"} == {"logs"}
    assert {path.name for path in logs if path.suffix != ".log"} == set()


def test_data_that_cannot_be_written_is_an_error(programs, tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text("apiVersion: muster/v1\nkind: Job\nmetadata: {name: a}\nspec: {command: [x]}\n")
    command = [programs / "muster", "explain", job]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, preexec_fn=closing(1), timeout=60)
    assert done.returncode == 1 and "write to stdout: it is closed" in done.stderr


@pytest.mark.parametrize("stderr", ["closed", "full"])
def test_an_error_keeps_its_code_when_nobody_can_read_it(programs, tmp_path, stderr):
    with open("/dev/full", "w") as full:
        prepare = closing(2) if stderr == "closed" else None
        command = [programs / "muster", "data", "ls", "nothing"]
        done = subprocess.run(command, cwd=tmp_path, stderr=full, preexec_fn=prepare, timeout=60)
    assert done.returncode == 3

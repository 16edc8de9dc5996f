"""muster dump: where the ranks of a running job stand, asked from another terminal."""

import json
import os
import pathlib
import signal
import subprocess

import pytest

MARKED = """
import os, sys, threading, time

def deep(level):
    if level > 0:
        return deep(level - 1)
    open(f"{os.environ['MARKS']}/{os.environ['RANK']}", "w").close()
    while True:
        time.sleep(3600)

def odd():
    open(f"{os.environ['MARKS']}/{os.environ['RANK']}", "w").close()
    lock = threading.Lock()
    with lock:
        lock.acquire()

odd() if os.environ["RANK"] == "2" else deep(3)
"""


@pytest.fixture
def dump(bin_with_stepper):
    def call(*words) -> subprocess.CompletedProcess:
        command = [bin_with_stepper / "muster", "dump", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    return call


@pytest.fixture
def standing(start, script, python, tmp_path):
    """Four ranks that stand, the third elsewhere than the others."""
    marks = tmp_path / "marks"
    marks.mkdir()

    def begin(*flags):
        run = start(python, script(MARKED), ranks=4, flags=flags, MARKS=str(marks))
        run.wait(lambda: len(os.listdir(marks)) == 4, "four ranks that stand")
        return run

    return begin


@pytest.mark.parametrize("flags", [(), ("--preload", "threading")])
def test_the_outlier_comes_first_and_the_others_are_one_entry(standing, dump, flags):
    run = standing(*flags)
    shown = dump(run.folder)
    assert shown.returncode == 0, shown.stderr
    heads = [line for line in shown.stdout.splitlines() if line.startswith("rank")]
    assert [head.split(":")[0] for head in heads] == ["rank 2", "ranks 0-1, 3"]
    assert "odd (script.py:15)" in heads[0] and "deep (script.py:9)" in heads[1]
    assert shown.stdout.count("deep  script.py:6") == 3
    run.process.send_signal(signal.SIGTERM)
    run.end()
    assert not run.events("fault")


def test_json_has_every_thread_of_every_rank(standing, dump):
    run = standing()
    document = json.loads(dump(run.folder, "--json").stdout)
    assert document["format"] == "muster-stacks/1"
    processes = document["processes"]
    assert [process["rank"] for process in processes] == [0, 1, 2, 3]
    assert [process["pid"] for process in processes] == [run.pid(rank) for rank in range(4)]
    for process in processes:
        main = process["threads"][0]
        assert main["tids"] == [process["pid"]]
        assert main["python"][-1][0] == "<module>"
        assert any(function == "Py_RunMain" for function, _, _ in main["native"])


def test_a_stopped_rank_is_seen_and_stays_stopped(standing, dump):
    run = standing()
    pid = run.pid(1)
    os.kill(pid, signal.SIGSTOP)
    stat = pathlib.Path(f"/proc/{pid}/stat")
    run.wait(lambda: stat.read_text().rsplit(") ")[-1].startswith("T"), "a stopped rank")
    process = json.loads(dump(run.folder, "--json").stdout)["processes"][1]
    assert process["state"] == "T" and process["threads"][0]["python"][0][0] == "deep"
    assert stat.read_text().rsplit(") ")[-1].startswith("T")
    os.kill(pid, signal.SIGCONT)
    run.wait(lambda: stat.read_text().rsplit(") ")[-1].startswith("S"), "a rank that goes on")


def test_what_cannot_be_asked_is_told(standing, dump, tmp_path):
    run = standing()
    assert oct((run.folder / "control").stat().st_mode & 0o777) == "0o600"
    facts = json.loads((run.folder / "run.json").read_text())
    run.process.send_signal(signal.SIGTERM)
    run.end()
    over = dump(run.folder)
    assert over.returncode == 1 and "is over" in over.stderr
    assert not (run.folder / "control").exists()
    (run.folder / "result.json").unlink()
    assert "broke off" in dump(run.folder).stderr
    (run.folder / "run.json").write_text(json.dumps(facts | {"host": "elsewhere"}))
    elsewhere = dump(run.folder, "--json")
    assert elsewhere.returncode == 6
    assert "led by elsewhere" in json.loads(elsewhere.stdout)["error"]["message"]
    assert dump(tmp_path / "nowhere").returncode == 3

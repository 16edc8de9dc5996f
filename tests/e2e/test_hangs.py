"""A rank that lives and does nothing is found, blamed and replaced; one that is only slow is left alone."""

import os
import pathlib
import re
import signal
import time

import pytest

STEPS = 4000


@pytest.fixture
def stepping(start, tmp_path):
    """Three ranks that do what files of the injector say, and have done enough steps to be judged."""
    folder = tmp_path / "hangs"
    folder.mkdir()

    def begin(*flags):
        words = ["--steps", STEPS, "--step-ms", 5, "--every", 100, "--hang-dir", folder]
        run = start("muster-train", *words, ranks=3, flags=flags)
        run.wait_step(60)
        return run

    begin.folder = folder
    return begin


def inject(folder: pathlib.Path, rank: int, kind: str):
    (folder / "part").write_text(kind)
    (folder / "part").rename(folder / f"rank-{rank}")


@pytest.mark.parametrize("rank, kind", [(0, "loop"), (1, "deadlock"), (2, "read"), (1, "SIGSTOP")])
def test_a_rank_that_hangs_is_killed_and_the_run_goes_on(stepping, rank, kind):
    run = stepping()
    began = time.monotonic_ns()
    if kind == "SIGSTOP":
        os.kill(run.pid(rank), signal.SIGSTOP)
    else:
        inject(stepping.folder, rank, kind)
    hang = run.wait_event("hang")
    assert hang["rank"] == rank
    # 2 s on a quiet machine; where a step has taken long, the next may too
    slowest = max(step["total_us"] for other in range(3) for step in run.steps(other)) * 1e3
    assert 1.7e9 < hang["t_ns"] - began < 5e9 + 3 * slowest
    run.wait_event("ranks_ready", gen=2)
    run.process.send_signal(signal.SIGTERM)
    run.end()
    fault = run.fault()
    assert fault["rank"] == rank and fault["layer"] == "heartbeat"
    what = "stopped by a signal" if kind == "SIGSTOP" else "in forward"
    assert re.match(rf"hung: {what} for [1-9][\d.]* s", fault["cause"]), fault["cause"]
    assert f"muster: rank {rank} {fault['cause'].replace('hung', 'hangs')}" in run.err
    run.assert_nothing_left()


def test_pauses_of_one_and_a_half_seconds_are_no_hang(stepping):
    run = stepping()
    for rank in (0, 1, 2):
        step = run.steps(0)[-1]["step"]
        inject(stepping.folder, rank, "pause")
        run.wait(lambda folder=stepping.folder, rank=rank: not (folder / f"rank-{rank}").exists(), "the pause")
        run.wait_step(step + 20)
    pid = run.pid(1)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1.5)  # that time passes is what is tested
    os.kill(pid, signal.SIGCONT)
    run.wait_step(run.steps(0)[-1]["step"] + 100)
    assert not run.events("hang")
    run.process.send_signal(signal.SIGTERM)
    run.end()
    assert not run.events("fault")


def test_a_hang_can_be_left_alone(stepping):
    run = stepping("--report-hangs")
    pid = run.pid(2)
    os.kill(pid, signal.SIGSTOP)
    run.wait_event("hang", rank=2)
    os.kill(pid, signal.SIGCONT)
    run.wait_step(run.steps(0)[-1]["step"] + 100)
    run.process.send_signal(signal.SIGTERM)
    run.end()
    assert "nothing is done about it" in run.err
    assert not run.events("fault")


STANDS = """
import os, signal, sys, threading

def never_ends():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

print("begins", flush=True)
if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    never_ends()
"""


def test_a_script_that_does_not_end_is_told_of_with_its_place(start, script, python):
    run = start(python, script(STANDS), flags=["--hang-limit", 1, "--report-hangs"])
    suspected = run.wait_event("suspected")
    assert suspected["ranks"] == "1" and suspected["acts"] == 0
    assert re.match(r"rank 1 stands still for [1-9]", suspected["what"]) and "rank 0 finished" in suspected["what"]
    run.wait_event("stacks")
    run.process.send_signal(signal.SIGTERM)
    run.end()
    assert "muster: rank 1 stands in " in run.err and "never_ends (script.py:7)" in run.err
    assert not run.events("fault")
    run.assert_nothing_left()


def test_a_script_that_does_not_end_is_started_again_behind_the_limit(start, script, python):
    run = start(python, script(STANDS), flags=["--hang-limit", 1])
    assert run.end() == 0, run.err
    fault = run.fault()
    assert fault["rank"] == 1 and fault["layer"] == "stillness"
    assert re.match(r"hung: rank 1 stands still for [1-9]", fault["cause"]), fault["cause"]
    assert any("never_ends (script.py:7)" in group["at"] for group in fault["stacks"]["groups"])
    run.assert_nothing_left()


SPINS = """
import os, time

def turns():
    while True:
        pass

def waits():
    while True:
        time.sleep(3600)

turns() if os.environ["RANK"] == "2" else waits()
"""


def test_one_that_turns_while_the_others_wait_is_the_outlier(start, script, python):
    run = start(python, script(SPINS), ranks=3, flags=["--hang-limit", 2, "--max-restarts", 0])
    assert run.end() == 137, run.err
    assert "ranks 0-1 stand still for" in run.fault()["cause"] and "while rank 2 computes" in run.fault()["cause"]
    assert run.fault()["rank"] == 2
    outlier = run.fault()["stacks"]["groups"][0]
    assert outlier["ranks"] == [2] and outlier["at"].startswith("turns (script.py:")
    assert oct((run.folder / run.fault()["stacks"]["file"]).stat().st_mode & 0o777) == "0o600"


WAITS = """
import os, time

if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    time.sleep(3600)
"""


def test_of_scripts_that_all_wait_the_one_that_is_stopped_is_to_blame(start, script, python):
    run = start(python, script(WAITS), ranks=3, flags=["--hang-limit", 2])
    run.wait_event("worker_started", rank=2)
    os.kill(run.pid(2), signal.SIGSTOP)
    assert run.end() == 0, run.err
    assert run.fault()["rank"] == 2, run.fault()["cause"]
    assert "rank 2 is stopped by a signal" in run.fault()["cause"]


def test_scripts_that_write_now_and_then_are_left_alone(start, script, python):
    lines = "import time\nfor i in range(8):\n    time.sleep(0.5)\n    print(i, flush=True)\n"
    run = start(python, script(lines), flags=["--hang-limit", 2])
    assert run.end() == 0, run.err
    assert not run.events("suspected")


@pytest.mark.parametrize(
    "kind, function",
    [("loop", "Main"), ("deadlock", "std::thread::join"), ("read", "read"), ("SIGSTOP", "")],
)
def test_stacks_say_where_a_rank_stood(stepping, kind, function):
    run = stepping("--max-restarts", 0)
    if kind == "SIGSTOP":
        os.kill(run.pid(1), signal.SIGSTOP)
    else:
        inject(stepping.folder, 1, kind)
    assert run.end() == 137
    groups = run.fault()["stacks"]["groups"]
    (own,) = [group for group in groups if group["ranks"] == [1]]
    assert function in own["at"]
    (others,) = [group for group in groups if group["ranks"] == [0, 2]]
    assert "muster::coll::ShmGroup" in others["at"]
    assert "muster: rank 1 stands in " in run.err
    run.assert_nothing_left()

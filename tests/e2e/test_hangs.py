"""A rank that lives and does nothing is found, blamed and replaced; one that is only slow is left alone."""

import os
import pathlib
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
    assert 1.7e9 < hang["t_ns"] - began < 5e9  # 2 s on a quiet machine
    run.wait_event("ranks_ready", gen=2)
    run.process.send_signal(signal.SIGTERM)
    run.end()
    fault = run.fault()
    assert fault["rank"] == rank and fault["layer"] == "heartbeat"
    what = "stopped by a signal for 1." if kind == "SIGSTOP" else "in forward for 1."
    assert fault["cause"].startswith("hung: " + what), fault["cause"]
    assert f"muster: rank {rank} hangs: {what}" in run.err
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

"""A rank that SIGKILL does not end, because the kernel holds it (state D): it is found, nobody waits for it, another takes
its place, and the run says what it could not remove."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

from tests.e2e.conftest import wait_for

FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")


@pytest.fixture
def hold(tmp_path):
    """hold(pid): from now on the process is in state D, until `hold.let_go()` or the end of the test."""
    # Under cgroup v2 a frozen process does die of SIGKILL.
    folder = FREEZER / f"muster-{os.getpid()}-{tmp_path.name}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no freezer of cgroup v1: {error}")

    def hold(pid: int):
        (folder / "cgroup.procs").write_text(str(pid))
        (folder / "freezer.state").write_text("FROZEN")
        status = pathlib.Path(f"/proc/{pid}/status")
        wait_for(lambda: "State:\tD" in status.read_text(), "state D")

    def held() -> str:
        return (folder / "cgroup.procs").read_text()

    def let_go():
        (folder / "freezer.state").write_text("THAWED")
        wait_for(lambda: not held(), "the end of who was held")

    hold.let_go, hold.held = let_go, held
    yield hold
    let_go()
    folder.rmdir()


def end(run, hold) -> int:
    """Its exit code. It ends beside who is held, who dies when the kernel lets go; then what it says is done."""
    code = run.end(60)
    assert hold.held()
    hold.let_go()
    if "the control group" in run.err:  # where none can be made there is none
        subprocess.run(["sh", "-c", re.search(r"once it has ended: (find .*)", run.err)[1]], check=True)
    run.assert_nothing_left()
    return code


@pytest.mark.parametrize("flags", [(), ("--restart-all",)])
def test_a_program_of_ours_goes_on_without_it(start, hold, flags):
    run = start("muster-train", "--steps", 600, "--step-ms", 5, "--every", 100, ranks=3, flags=flags)
    run.wait_step(100)
    hold(run.pid(1))
    assert end(run, hold) == 0, run.err
    assert run.fault()["rank"] == 1 and run.result()["restarts"] == 1
    assert "state D" in run.fault()["cause"] and "does not die of SIGKILL" in run.fault()["cause"]


WAITS = """
import os, time

if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    time.sleep(3600)
"""


def test_a_script_is_started_again_beside_it(start, script, python, hold):
    run = start(python, script(WAITS), ranks=3, flags=["--hang-limit", 3])
    hold(run.pid(2))
    assert end(run, hold) == 0, run.err
    assert run.fault()["rank"] == 2, run.fault()["cause"]
    assert "rank 2 waits in the kernel (state D)" in run.fault()["cause"]


def test_a_run_that_is_interrupted_ends_beside_it(start, hold):
    run = start("muster-train", "--steps", 100000, "--step-ms", 5, ranks=2, flags=["--grace", "1"])
    run.wait_step(20)
    hold(run.pid(1))
    run.process.send_signal(signal.SIGTERM)
    assert end(run, hold) == 143
    assert "1 process in the kernel (state D), where SIGKILL does not end it; going on without" in run.err

"""A rank, or what it started, is ended by the kernel because memory ran out: the run says that, and not just SIGKILL."""

import functools
import os
import pathlib
import signal
import subprocess

import pytest

LIMIT = 384 << 20


@pytest.fixture
def start_with_little(start, tmp_path):
    """As `start`, in a control group with little memory."""
    folder = pathlib.Path(f"/sys/fs/cgroup/memory/muster-{os.getpid()}-{tmp_path.name}")
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(LIMIT))
    except OSError as error:
        pytest.skip(f"no memory controller of cgroup v1 to be written: {error}")
    enter = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', folder / "cgroup.procs"]
    begin = functools.partial(start, prefix=enter)
    begin.enter = enter
    yield begin
    folder.rmdir()


TAKES_ALL = """
import os, subprocess, sys, time

def take():
    # The largest process of the group is the one that the kernel picks.
    taken = []
    while True:
        taken.append(b"x" * (8 << 20))

if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["RANK"] == "1":
    if sys.argv[1] == "itself":
        take()
    code = "taken = []\\nwhile True: taken.append(b'x' * (8 << 20))"
    if subprocess.run([sys.executable, "-c", code]).returncode != 0:
        sys.exit(3)
"""


@pytest.mark.parametrize(
    "who, cause",
    [
        ("itself", "killed by SIGKILL; memory ran out on its host, the kernel killed 1 process of the run"),
        ("child", "ended with exit code 3; memory ran out on its host, the kernel killed 1 process of the run"),
    ],
)
def test_the_cause_is_that_memory_ran_out(start_with_little, script, python, who, cause):
    run = start_with_little(python, script(TAKES_ALL), who, flags=["--preload", "none"])
    assert run.end() == 0, run.err
    fault = run.fault()
    assert (fault["rank"], fault["cause"]) == (1, cause)
    assert fault["exit"]["oom_kills"] == 1
    assert f"rank 1 {cause}" in run.err
    run.assert_nothing_left()


SLEEPS = """
import os, time
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    time.sleep(600)
"""


def test_a_kill_by_somebody_is_no_want_of_memory(start_with_little, script, python):
    run = start_with_little(python, script(SLEEPS))
    run.kill(1)
    assert run.end() == 0, run.err
    assert run.fault()["cause"] == "killed by SIGKILL" and "oom_kills" not in run.fault()["exit"]


def test_what_struck_before_the_run_is_laid_to_nobody_by_another_coordinator(start_with_little, script, python):
    taker = [*start_with_little.enter, python, "-c", "taken = []\nwhile True: taken.append(b'x' * (8 << 20))"]
    assert subprocess.run(taker).returncode == -signal.SIGKILL
    run = start_with_little(python, script(SLEEPS))
    victim = run.pid(1)
    os.kill(run.coordinator(), signal.SIGKILL)
    run.wait_event("coordinator_back")
    os.kill(victim, signal.SIGKILL)
    assert run.end() == 0, run.err
    assert run.fault()["cause"] == "killed by SIGKILL"

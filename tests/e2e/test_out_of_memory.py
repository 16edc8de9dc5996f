"""A rank, or what it started, is ended by the kernel because memory ran out: the run says that, and not just SIGKILL."""

import os
import pathlib

import pytest

GROUPS = pathlib.Path("/sys/fs/cgroup")
LIMIT = 384 << 20  # more than pytest takes, so that it is never the largest


@pytest.fixture
def small_memory(tmp_path):
    """A control group with little memory, for this process and all that it starts; as v1 and v2 have it."""
    v1 = GROUPS / "memory"
    home = next(
        (line.split(":")[2] for line in pathlib.Path("/proc/self/cgroup").read_text().split() if "memory" in line), ""
    )
    folder = v1 / f"muster-{os.getpid()}-{tmp_path.name}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(LIMIT))
    except OSError as error:
        pytest.skip(f"no memory controller of cgroup v1 to be written: {error}")

    def enter():
        (folder / "cgroup.procs").write_text(str(os.getpid()))

    enter()
    yield folder
    (v1 / home.lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))
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
def test_the_cause_is_that_memory_ran_out(start, script, python, small_memory, who, cause):
    run = start(python, script(TAKES_ALL), who, flags=["--preload", "none"])
    assert run.end() == 0, run.err
    fault = run.fault()
    assert (fault["rank"], fault["cause"]) == (1, cause)
    assert fault["exit"]["oom_kills"] == 1
    assert f"rank 1 {cause}" in run.err
    run.assert_nothing_left()


def test_a_kill_by_somebody_is_no_want_of_memory(start, script, python, small_memory):
    run = start(python, script("import os, time\nif os.environ['TORCHELASTIC_RESTART_COUNT'] == '0': time.sleep(600)"))
    run.kill(1)
    assert run.end() == 0, run.err
    assert run.fault()["cause"] == "killed by SIGKILL" and "oom_kills" not in run.fault()["exit"]

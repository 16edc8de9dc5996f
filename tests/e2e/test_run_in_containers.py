"""What containers and plain users lack: a cgroup they may write, the clone3 call. A run recovers and ends all the same."""

import ctypes
import functools
import signal
import struct

import pytest

DAEMON = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
print("up", flush=True)
time.sleep(600)
"""
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
CLONE3, ENOSYS = 435, 38


def refuse_clone3():
    """The filter that container engines had for years: clone3 does not exist, so that libc falls back to clone."""
    load_number, allow, refuse = (0x20, 0, 0, 0), (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | ENOSYS)
    program = b"".join(struct.pack("HBBI", *line) for line in [load_number, (0x15, 0, 1, CLONE3), refuse, allow])
    buffer = ctypes.create_string_buffer(program)
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


@pytest.fixture(params=["read-only cgroups", "no clone3"])
def start_lacking(request, start, start_without_cgroups):
    """As `start`, in a place that lacks something."""
    if request.param == "read-only cgroups":
        return start_without_cgroups
    return functools.partial(start, prepare=refuse_clone3)


def wait_up(run):
    """Until both workers have said it."""
    for rank in range(2):
        log = run.folder / "logs" / f"rank-{rank}" / "gen-1.stdout.log"
        run.wait(lambda log=log: log.exists() and b"up" in log.read_bytes(), "the worker says it is up")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_costs_one_generation(start_lacking, rank):
    run = start_lacking("muster-train", "--steps", 60, "--step-ms", 5)
    run.wait_step(10)
    run.kill(rank)
    assert run.end() == 0, run.err
    assert run.result()["restarts"] == 1
    run.assert_nothing_left()


def test_stubborn_workers_and_their_daemons_end_with_the_run(start_lacking, python):
    run = start_lacking(python, "-c", DAEMON, flags=["--grace", 0.2])
    wait_up(run)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130, run.err
    run.assert_nothing_left()


def test_sigkill_of_muster_run_leaves_nothing(start_lacking, python):
    run = start_lacking(python, "-c", DAEMON)
    wait_up(run)
    run.process.kill()
    run.end()
    run.assert_nothing_left()

"""The shim, parent of every worker, is killed: another takes its place, all ranks start again, and nothing of theirs is left."""

import os
import pathlib
import signal
import socket

import pytest

STEPS = 300
HOST = socket.gethostname()
# In its first life each rank leaves a process that lost its parents, its session and its environment, and ignores TERM.
STRAYS = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
life = os.environ["TORCHELASTIC_RESTART_COUNT"]
if life == "0" and os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        pathlib.Path(f"stray-{os.environ['RANK']}.tmp").write_text(str(os.getpid()))
        os.rename(f"stray-{os.environ['RANK']}.tmp", f"stray-{os.environ['RANK']}")
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
pathlib.Path(f"up-{os.environ['RANK']}.{life}").touch()
while not pathlib.Path("enough").exists():
    time.sleep(0.01)
"""


def undisturbed_sum() -> str:
    return f"sum {sum(step * (rank + 1) for step in range(1, STEPS + 1) for rank in range(2))}"


def last_line(log: bytes) -> str:
    return log.decode().splitlines()[-1]


def lives(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ")[-1][0] not in "ZX"
    except OSError:
        return False


@pytest.fixture(params=["control group", "no control group"])
def start_anywhere(request, start, start_without_cgroups):
    """As `start`, with and without a control group for the workers."""
    return start if request.param == "control group" else start_without_cgroups


@pytest.fixture
def stepping(start):
    """A run of the stepper that is at work, its flags as given."""

    def begin(*flags):
        run = start("muster-train", "--steps", STEPS, "--step-ms", 2, "--every", 25, flags=flags)
        run.wait_step(60)
        return run

    return begin


@pytest.fixture
def straying(start_anywhere, script, python, tmp_path):
    """A run whose two ranks have each left a stray, and the pids of those."""
    strays = []

    def begin(*flags, grace=60):
        run = start_anywhere(python, script(STRAYS), flags=["--grace", grace, *flags])
        for rank in range(2):
            run.wait((tmp_path / f"stray-{rank}").exists, "a stray")
            strays.append(int((tmp_path / f"stray-{rank}").read_text()))
            run.wait((tmp_path / f"up-{rank}.0").exists, "a rank")
        assert all(lives(pid) for pid in strays)
        return run, strays

    yield begin
    for pid in filter(lives, strays):
        os.kill(pid, signal.SIGKILL)


def finish(run, tmp_path, life: int):
    """In that life both ranks are told that it is enough."""
    for rank in range(2):
        run.wait((tmp_path / f"up-{rank}.{life}").exists, f"rank {rank} in life {life}")
    (tmp_path / "enough").touch()
    assert run.end() == 0, run.err
    run.assert_nothing_left()


def test_every_rank_starts_again_below_another_shim(start_anywhere, muster):
    run = start_anywhere("muster-train", "--steps", STEPS, "--step-ms", 2, "--every", 25)
    run.wait_step(60)
    dead = run.kill_shim()
    run.wait_event("generation_started", gen=2)
    assert run.shim() != dead
    assert run.end() == 0, run.err
    run.assert_nothing_left()
    assert last_line(run.log(0, 2)) == undisturbed_sum()
    cause = f"lost with the shim of node {HOST}, killed by SIGKILL"
    fault = run.fault()
    assert (fault["generation"], fault["cause"], fault["layer"]) == (1, cause, "node")
    assert fault["decision"] == "process restart 1 of 3, with a new shim"
    assert [(rank["state"], rank["exit"]["signal"]) for rank in fault["ranks"]] == [("failed", "SIGKILL")] * 2
    assert f"ranks 0 and 1 {cause} at step {fault['step']}; recovered in " in run.err
    assert run.result()["restarts"] == 1
    (lost,) = run.events("shim_lost")
    assert (lost["gen"], lost["node"], lost["first_rank"], lost["ranks"]) == (1, HOST, 0, 2)
    assert lost["reason"] == "killed by SIGKILL"
    started = [(e["gen"], e["rank"], e["how"]) for e in run.events("worker_started")]
    assert sorted(started) == [(1, 0, "fork"), (1, 1, "fork"), (2, 0, "fork"), (2, 1, "fork")]
    exits = [(e["gen"], e.get("signal"), e["cause"]) for e in run.events("worker_exited")]
    assert exits[:2] == [(1, "SIGKILL", "fault")] * 2 and len(exits) == 4
    resumed = min(s["step"] for s in run.steps(0) if s["gen"] == 2)
    assert resumed % 25 == 1 and resumed <= fault["step"] + 2
    assert cause in muster("report", run.folder, "--json").out
    assert f"the shim of node {HOST} is lost: killed by SIGKILL" in muster("top", "--once", run.folder).out


def test_a_shim_is_killed_in_each_of_three_generations(stepping):
    run = stepping()
    for generation in (1, 2, 3):
        if generation > 1:
            run.wait_event("ranks_ready", gen=generation)
        run.kill_shim()
        run.wait_event("generation_started", gen=generation + 1)
    assert run.end() == 0, run.err
    run.assert_nothing_left()
    assert last_line(run.log(0, 4)) == undisturbed_sum()
    assert run.result()["restarts"] == 3
    assert [e["gen"] for e in run.events("fault")] == [e["gen"] for e in run.events("shim_lost")] == [1, 2, 3]


def test_what_workers_left_behind_goes_before_others_start(straying, tmp_path):
    run, strays = straying()
    run.kill_shim()
    run.wait((tmp_path / "up-0.1").exists, "rank 0 again")
    assert not any(lives(pid) for pid in strays)
    finish(run, tmp_path, 1)


def test_a_shim_is_killed_behind_the_coordinator_that_started_it(straying, tmp_path):
    """Its orphans come to `muster run` then, and nobody hears how it ended."""
    run, strays = straying()
    os.kill(run.coordinator(), signal.SIGKILL)
    run.wait_event("coordinator_back")
    run.kill_shim()
    run.wait((tmp_path / "up-0.1").exists, "rank 0 again")
    assert not any(lives(pid) for pid in strays)
    finish(run, tmp_path, 1)
    assert run.fault()["cause"] == f"lost with the shim of node {HOST}, which died"


@pytest.mark.parametrize("first", ["shim", "coordinator"])
def test_shim_and_coordinator_are_killed_at_once(straying, tmp_path, first):
    run, strays = straying()
    pids = [run.shim(), run.coordinator()]
    for pid in pids if first == "shim" else reversed(pids):
        os.kill(pid, signal.SIGKILL)
    run.wait((tmp_path / "up-0.1").exists, "rank 0 again")
    assert not any(lives(pid) for pid in strays)
    finish(run, tmp_path, 1)
    assert len(run.events("fault")) == len(run.events("shim_lost")) == run.result()["restarts"] == 1


def test_a_coordinator_that_is_killed_while_it_replaces_a_shim_is_followed(stepping):
    """At every moment of it, as far as chance has it."""
    run = stepping()
    run.kill_shim()
    os.kill(run.coordinator(), signal.SIGKILL)
    run.wait_event("coordinator_back")
    assert run.end() == 0, run.err
    run.assert_nothing_left()
    assert run.steps(0)[-1]["step"] == run.steps(1)[-1]["step"] == STEPS
    assert len(run.events("fault")) == 1


@pytest.mark.parametrize("moment", ["before any worker", "as workers start"])
def test_a_shim_is_killed_during_the_first_start(start, moment):
    run = start("muster-train", "--steps", STEPS, "--step-ms", 2, "--every", 25)
    run.wait_event("run_started" if moment == "before any worker" else "generation_started")
    run.freeze()
    run.kill_shim()
    run.thaw()
    assert run.end() == 0, run.err
    run.assert_nothing_left()
    assert run.steps(0)[-1]["step"] == run.steps(1)[-1]["step"] == STEPS
    assert run.result()["restarts"] <= 1


def test_a_shim_is_killed_as_a_later_generation_starts(stepping):
    run = stepping("--restart-all")
    run.kill(1)
    run.wait_event("generation_started", gen=2)
    run.kill_shim()
    assert run.end() == 0, run.err
    run.assert_nothing_left()
    assert run.steps(0)[-1]["step"] == run.steps(1)[-1]["step"] == STEPS
    assert run.result()["restarts"] == 2


def test_a_shim_that_is_killed_while_it_stops_workers_ends_the_wait_for_them(straying, tmp_path):
    """Rank 1 and its stray have a minute to end, and would take it."""
    run, strays = straying()
    run.kill(0)
    run.wait_event("pause")
    run.kill_shim()
    run.wait((tmp_path / "up-1.1").exists, "rank 1 again")
    assert not any(lives(pid) for pid in strays)
    finish(run, tmp_path, 1)
    assert f"muster: lost the shim of node {HOST}, killed by SIGKILL" in run.err
    assert run.result()["restarts"] == 1  # the fault was the rank's
    assert run.fault()["cause"] == "killed by SIGKILL"


def test_a_shim_that_does_not_answer_a_stop_is_replaced(straying, tmp_path):
    run, strays = straying(grace=0.2)
    run.kill(0)
    run.wait_event("pause")
    os.kill(run.shim(), signal.SIGSTOP)
    run.wait((tmp_path / "up-1.1").exists, "rank 1 again")
    assert not any(lives(pid) for pid in strays)
    finish(run, tmp_path, 1)
    assert "which did not answer and was killed" in run.err


def test_a_shim_that_is_killed_at_the_end_costs_no_success(start, script, python, tmp_path):
    text = "import os, pathlib; pathlib.Path('done' + os.environ['RANK']).touch()"
    run = start(
        python, script("import time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)\n" + text)
    )
    run.wait_event("worker_started", rank=1)
    pids = [run.pid(rank) for rank in range(2)]
    run.freeze()
    (tmp_path / "go").touch()
    run.wait(lambda: not any(lives(pid) for pid in pids), "the end of both ranks")
    run.kill_shim()
    run.thaw()
    assert run.end() == 0, run.err
    run.assert_nothing_left()
    assert run.result()["restarts"] == 0 and run.events("fault") == []


def test_ranks_that_kill_their_shim_each_time_use_up_the_restarts(start, python):
    run = start(python, "-c", "import os, time; os.kill(os.getppid(), 9); time.sleep(600)", flags=["--max-restarts", 2])
    assert run.end() == 93, run.err
    run.assert_nothing_left()
    assert "killed by SIGKILL; no restart left (2 used)" in run.result()["reason"]
    assert len(run.events("generation_started")) == 3


def test_without_restarts_the_end_of_the_shim_is_that_of_the_run(straying):
    run, strays = straying("--max-restarts", 0)
    run.kill_shim()
    assert run.end() == 128 + signal.SIGKILL, run.err
    reason = f"ranks 0 and 1 lost with the shim of node {HOST}, killed by SIGKILL; restarts are off"
    assert run.result()["reason"] == reason
    assert not any(lives(pid) for pid in strays)
    run.assert_nothing_left()


def test_shims_that_are_killed_without_a_newer_checkpoint_end_the_run(start):
    run = start("muster-train", "--steps", 100000, "--step-ms", 2, "--every", 90000, flags=["--max-restarts", 20])
    for generation in (1, 2, 3):
        run.wait_event("ranks_ready", gen=generation)
        run.kill_shim()
    assert run.end() == 93, run.err
    assert "no new durable step in 3 generations" in run.result()["reason"]
    run.assert_nothing_left()

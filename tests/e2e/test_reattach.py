"""The process that steers a run dies: another takes its place, and no rank notices."""

import os
import signal

import pytest


def kill_coordinator(run, count=1):
    os.kill(run.coordinator(), signal.SIGKILL)
    return run.wait_event("coordinator_back", count=count)


def test_ranks_go_on_as_if_nothing_had_been(start):
    run = start("muster-train", "--steps", 200, "--step-ms", 5, "--every", 50, ranks=2)
    run.wait_step(20)
    back = kill_coordinator(run)
    assert run.end() == 0, run.err
    assert back["gen"] == 1 and back["died"] == "killed by SIGKILL"
    assert "the process that steers the run was killed by SIGKILL" in run.err
    assert len(run.events("worker_started")) == 2
    assert [event["code"] for event in run.events("worker_exited")] == [0, 0]
    for rank in range(2):
        assert [s["step"] for s in run.steps(rank)] == list(range(1, 201))
    assert "200 steps, 0 restarts" in run.err


def test_every_line_of_a_rank_is_in_its_log(start):
    run = start("muster-train", "--steps", 300, "--step-ms", 3, "--every", 100, "--say", ranks=1)
    run.wait_step(20)
    for count in (1, 2):
        kill_coordinator(run, count)
        run.wait_step(20 + 60 * count)
    assert run.end() == 0, run.err


def test_a_rank_that_dies_while_nobody_looks_is_recovered(start):
    run = start("muster-train", "--steps", 200, "--step-ms", 5, "--every", 20, ranks=2)
    run.wait_step(30)
    run.freeze()
    run.kill(1)
    os.kill(run.coordinator(), signal.SIGKILL)
    assert run.end() == 0, run.err
    assert "rank 1 killed by SIGKILL" in run.err
    assert len(run.events("fault")) == 1
    assert run.steps(0)[-1]["step"] == run.steps(1)[-1]["step"] == 200


def test_signals_reach_the_one_that_took_its_place(start):
    run = start("muster-train", "--steps", 100000, "--step-ms", 5, "--every", 20, ranks=2)
    run.wait_step(10)
    kill_coordinator(run)
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 128 + signal.SIGTERM, run.err
    assert run.processes() == []


def test_the_fourth_death_in_a_minute_ends_the_run(start):
    run = start("muster-train", "--steps", 100000, "--step-ms", 5, "--every", 20, ranks=2)
    run.wait_step(10)
    for count in range(1, 4):
        kill_coordinator(run, count)
    os.kill(run.coordinator(), signal.SIGKILL)
    assert run.end() != 0
    assert "steers the run was killed by SIGKILL" in run.err
    assert run.processes() == []


def test_without_the_process_that_the_user_started_the_run_ends_in_order(start):
    run = start("muster-train", "--steps", 100000, "--step-ms", 5, "--every", 20, ranks=2)
    run.wait_step(10)
    run.process.kill()
    run.end()
    assert "the process that was started as muster run is gone" in run.err
    assert run.result()["exit_code"] == 128 + signal.SIGKILL
    run.assert_nothing_left()


@pytest.mark.parametrize("moment", ["starting", "stopping"])
def test_a_death_in_the_middle_of_a_restart_repeats_it(start, moment):
    flags = ["--restart-all"] if moment == "stopping" else []
    run = start("muster-train", "--steps", 200, "--step-ms", 5, "--every", 20, ranks=2, flags=flags)
    run.wait_step(30)
    run.kill(1)
    run.wait_event("fault" if moment == "stopping" else "generation_started", count=1 if moment == "stopping" else 2)
    os.kill(run.coordinator(), signal.SIGKILL)
    assert run.end() == 0, run.err
    assert run.steps(0)[-1]["step"] == run.steps(1)[-1]["step"] == 200

"""The process that steers a run dies: another takes its place, and no rank notices."""

import json
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
    assert "the process that steers the run died (killed by SIGKILL)" in run.err
    assert len(run.events("worker_started")) == 2
    assert [event["code"] for event in run.events("worker_exited")] == [0, 0]
    for rank in range(2):
        assert [s["step"] for s in run.steps(rank)] == list(range(1, 201))
    assert "200 steps, 0 restarts" in run.err


def test_the_log_goes_on_in_the_same_file_with_times(start, script, python, muster):
    text = "import time\nfor i in range(400):\n    print('line', i, flush=True)\n    time.sleep(0.005)\n"
    run = start(python, script(text), ranks=1)
    for count in (1, 2):
        run.wait(lambda count=count: run.log_exists(0) and f"line {100 * count}\n".encode() in run.log(0), "a line")
        kill_coordinator(run, count)
    assert run.end() == 0, run.err
    numbers = [int(line.split()[1]) for line in run.log(0).decode().splitlines()]
    # What was between the pipe and the file goes with the process that held it: a moment's worth.
    assert numbers == sorted(set(numbers)) and len(numbers) >= 390 and numbers[-1] == 399
    stamps = [line.split()[0] for line in muster("logs", run.folder, "--timestamps").out.splitlines()]
    assert len(stamps) == len(numbers) and stamps == sorted(stamps) and len(set(stamps)) > 25


def test_a_store_outlives_the_coordinator(start, script, torch_python):
    text = """
import os, pathlib, time, torch.distributed as dist
dist.init_process_group("gloo")
here, rank = pathlib.Path("here"), dist.get_rank()
store = dist.distributed_c10d._get_default_store()
store.set(f"before{rank}", "yes")
if rank == 0:
    pathlib.Path("up").write_text("up")
while not here.exists():
    time.sleep(0.01)
assert store.get(f"before{1 - rank}") == b"yes"
store.set(f"after{rank}", "yes")
assert store.get(f"after{1 - rank}") == b"yes"
dist.new_group([0, 1])
dist.barrier()
print("met", flush=True)
"""
    run = start(torch_python, script(text), ranks=2)
    where = run.folder.parent
    run.wait((where / "up").exists, "the ranks", limit=60)
    kill_coordinator(run)
    (where / "here").write_text("here")
    assert run.end(60) == 0, run.err
    assert run.log(0) == run.log(1) == b"met\n"
    assert run.events("fault") == []


def test_a_log_rule_that_matched_before_is_not_waited_for_again(start, script, python, tmp_path):
    text = "import time\nprint('begun', flush=True)\ntime.sleep(3)\n"
    rule = {"name": "begins", "pattern": "begun", "startWithin": "1s", "action": "fail"}
    spec = {"command": [python, str(script(text))], "ranksPerNode": 1, "logRules": [rule]}
    job = {"apiVersion": "muster/v1", "kind": "Job", "metadata": {"name": "ruled"}, "spec": spec}
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    run = start(job=tmp_path / "job.yaml", ranks=1)
    run.wait(lambda: run.log_exists(0) and run.log(0) == b"begun\n", "its line")
    kill_coordinator(run)
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


def test_the_fourth_death_in_a_minute_ends_the_run(start, muster):
    run = start("muster-train", "--steps", 100000, "--step-ms", 5, "--every", 20, ranks=2)
    run.wait_step(10)
    for count in range(1, 4):
        kill_coordinator(run, count)
    os.kill(run.coordinator(), signal.SIGKILL)
    assert run.end() != 0
    why = "the process that steers the run died 4 times, at last: killed by SIGKILL; its workers were stopped"
    assert f": {why}\n" in run.err and "exit code 1\n" in run.err
    assert run.processes() == []
    # The record ends as that of any run.
    result = run.result()
    assert (result["state"], result["exit_code"], result["reason"]) == ("FAILED", 1, why)
    assert result["steps"] >= 10 and result["run"] == str(run.folder)
    ended = run.events()[-1]
    assert (ended["event"], ended["state"], ended["reason"]) == ("run_ended", "FAILED", why)
    assert not [path.name for path in run.folder.iterdir() if path.name == "control" or path.suffix == ".tmp"]
    assert f"muster: logs in {run.folder.name}/logs" in run.err
    assert f"the whole story: muster report {run.folder.name}" in run.err
    shown = muster("show", run.folder).out
    assert shown.startswith("FAILED after ") and why in shown


@pytest.mark.parametrize("json_out", [True, False])
def test_a_run_that_nobody_steers_says_how_to_go_on(start, json_out):
    flags = ["--json"] if json_out else []
    run = start("muster-train", "--steps", 100000, "--step-ms", 2, "--every", 20, ranks=2, flags=flags)
    run.wait_event("checkpoint")
    for count in range(1, 4):
        kill_coordinator(run, count)
    os.kill(run.coordinator(), signal.SIGKILL)
    assert run.end() == 1
    assert "to go on from step " in run.err and f"muster run {run.folder.name}/job.yaml --checkpoint-dir" in run.err
    if json_out:
        assert json.loads(run.out) == run.result()


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

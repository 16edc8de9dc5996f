"""A rank dies, the run goes on: from the zygote for programs on our library, by exec for any other."""

import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import time

import pytest

STEPS = 300


def undisturbed_sum(ranks: int = 2) -> str:
    return f"sum {sum(step * (rank + 1) for step in range(1, STEPS + 1) for rank in range(ranks))}"


def last_line(log: bytes) -> str:
    return log.decode().splitlines()[-1]


def test_an_undisturbed_run_ends_with_0_and_leaves_nothing(start):
    run = start("muster-train", "--steps", STEPS)
    assert run.end() == 0, run.err
    run.assert_nothing_left()
    assert last_line(run.log(0)) == undisturbed_sum()
    assert {e["how"] for e in run.events("worker_started")} == {"fork"}
    result = run.result()
    assert (result["state"], result["steps"], result["restarts"]) == ("SUCCEEDED", STEPS, 0)
    assert [s["step"] for s in run.steps(1)] == list(range(1, STEPS + 1))


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_costs_one_generation_and_no_result(start, rank):
    run = start("muster-train", "--steps", STEPS, "--step-ms", 2, "--every", 25)
    run.wait_step(60)
    run.kill(rank)
    assert run.end() == 0, run.err
    run.assert_nothing_left()
    assert last_line(run.log(0, 2)) == undisturbed_sum()
    result, fault = run.result(), run.fault()
    assert result["restarts"] == 1
    assert (fault["rank"], fault["generation"], fault["cause"]) == (rank, 1, "killed by SIGKILL")
    assert fault["exit"] == {"signal": "SIGKILL", "signal_number": 9}
    assert fault["step"] >= 60
    assert f"rank {rank} killed by SIGKILL at step {fault['step']}; recovered in " in run.err
    resumed = min(s["step"] for s in run.steps(0) if s["gen"] == 2)
    # A rank that is killed while step 75 is being saved has published 74.
    assert resumed % 25 == 1 and resumed <= fault["step"] + 2
    names = [e["event"] for e in run.events()]
    order = ["fault", "pause", "workers_stopped", "generation_started", "ranks_ready", "run_ended"]
    positions = [len(names) - 1 - names[::-1].index(name) for name in order]
    assert positions == sorted(positions)
    assert (run.folder / "generation").read_text() == "2\n"
    lost = result["lost"]
    stages = [lost[f"{stage}_s"] for stage in ("detect", "stop", "start", "replay")]
    assert all(stage >= 0 for stage in stages) and 0 < lost["total_s"] < 20
    assert lost["total_s"] == lost["at_most_s"] == pytest.approx(sum(stages))
    assert 0 < result["goodput"] <= 1


def test_two_ranks_that_die_together_are_one_fault(start):
    run = start("muster-train", "--steps", STEPS, "--step-ms", 2, ranks=4)
    run.wait_step(20)
    for pid in [run.pid(rank) for rank in (1, 3)]:
        os.kill(pid, signal.SIGKILL)
    assert run.end() == 0, run.err
    assert run.result()["restarts"] == 1
    assert "muster: ranks 1 and 3 killed by SIGKILL at step " in run.err, run.err
    (fault,) = run.events("fault")
    assert sorted([fault["rank"], *fault["others"]]) == [1, 3]
    assert [rank["rank"] for rank in run.fault()["ranks"] if rank["state"] == "failed"] == [1, 3]
    run.assert_nothing_left()


def test_deaths_at_random_moments_change_no_result(start):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    draw = random.Random(seed)
    run = start("muster-train", "--steps", STEPS, "--step-ms", 3, "--every", 5, flags=["--max-restarts", 20])
    for generation in range(1, 5):
        run.wait_step(draw.randrange(1, 60) + (generation - 1) * 60, generation=generation)
        run.kill(draw.randrange(2), generation)
        run.wait_event("generation_started", gen=generation + 1)
    assert run.end() == 0, run.err
    assert last_line(run.log(0, 5)) == undisturbed_sum()
    run.assert_nothing_left()


def test_the_same_exception_at_the_same_step_ends_the_run_with_its_code(start):
    run = start("muster-train", "--fail-at", 7, "--fail-rank", 1, "--exit", 42, "--fail-message", "loss is NaN")
    assert run.end() == 42
    assert "for the second time" in run.err and "loss is NaN" in run.err
    assert run.result()["restarts"] == 1
    assert run.fault()["exception"] == "stepper: loss is NaN"
    # What struck is said once, wherever it is said.
    assert run.result()["reason"].count("loss is NaN") == run.result()["reason"].count("exit code") == 1
    assert "NaN" not in run.fault()["decision"] and "exit code" not in run.fault()["decision"]
    run.assert_nothing_left()


def test_a_script_that_cannot_work_is_not_tried_for_long(start, python):
    run = start(python, "-c", "raise SystemExit('no such flag: --stpes')")
    assert run.end() == 1
    cause = "ended with exit code 1: no such flag: --stpes; "
    why = cause + "not started again: the same, soon after the start, for the third time"
    # Both do it; who is slower than 20 ms is stopped before.
    assert any(f"{who} {why}" in run.err for who in ("rank 0", "rank 1", "ranks 0 and 1")), run.err
    assert len(run.events("generation_started")) == 3


def test_who_does_not_understand_its_command_line_is_not_started_again(start, python, programs):
    parse = "import argparse; p = argparse.ArgumentParser('train.py'); p.add_argument('--lr'); p.parse_args()"
    for command, words in (
        ([python, "-c", parse, "--rl", 1], "train.py: error: unrecognized arguments: --rl 1"),
        ([programs / "muster-train", "vit", "--stpes", 3], "--stpes"),
    ):
        run = start(*command)
        assert run.end() == 2
        assert run.result()["restarts"] == 0
        assert words in run.result()["reason"] and "was not understood" in run.result()["reason"]


def test_without_restarts_the_cause_gives_the_exit_code(start, python):
    command = [python, "-c", "import os,sys,time; time.sleep(60) if os.environ['RANK'] == '0' else sys.exit(42)"]
    run = start(*command, flags=["--max-restarts", 0])
    assert run.end() == 42
    run = start(python, "-c", "import os,signal; os.kill(os.getpid(), signal.SIGSEGV)", flags=["--max-restarts", 0])
    assert run.end() == 128 + signal.SIGSEGV
    assert run.fault()["cause"] == "killed by SIGSEGV"
    run.assert_nothing_left()


def test_when_no_restart_is_left_the_code_is_93_and_the_cause_is_named(start, python):
    run = start(python, "-c", "import sys; sys.exit(5)", flags=["--max-restarts", 2])
    assert run.end() == 93
    assert "ended with exit code 5; no restart left (2 used)" in run.err
    assert len(run.events("generation_started")) == 3
    run.assert_nothing_left()


@pytest.fixture
def run_job(bin_with_stepper, tmp_path):
    """Runs a job file of one rank with this command and `restart`, and returns what --json printed, and the exit code."""

    def run(command: str, restart: str):
        job = tmp_path / "job.yaml"
        job.write_text(
            "apiVersion: muster/v1\nkind: Job\nmetadata: {name: full}\nspec:\n  ranksPerNode: 1\n"
            f"  command: [{command}]\n  restart: {{{restart}}}\n"
        )
        words = [bin_with_stepper / "muster", "run", job, "--run-dir", tmp_path / "full", "--json"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout), done.returncode, done.stderr

    return run


def test_after_its_process_restarts_a_job_gets_a_full_one(run_job, script, python):
    counter = script("import os,sys; sys.exit(int(os.environ['TORCHELASTIC_RESTART_COUNT']) < 2)")
    result, code, err = run_job(f"{python}, {counter}", "processRestarts: 1, fullRestarts: 1")
    assert code == 0, err
    assert (result["state"], result["restarts"]) == ("SUCCEEDED", 2)


def test_a_full_restart_that_finds_no_shim_ends_the_run(run_job, bin_with_stepper, script, python):
    shim = bin_with_stepper / "muster-shim"
    remover = script(f"import os; os.path.exists('{shim}') and os.unlink('{shim}'); os._exit(3)")
    result, code, err = run_job(f"{python}, {remover}", "processRestarts: 0, fullRestarts: 1")
    assert code == 1, err
    assert "muster-shim: no such file" in result["reason"]


def test_a_zygote_that_dies_beside_a_rank_is_replaced(start):
    run = start("muster-train", "--steps", STEPS, "--step-ms", 2, "--every", 25)
    run.wait_step(60)
    rank, zygote = run.pid(1), run.zygote()
    run.freeze()
    for pid in (rank, zygote):  # in this order in the shim's reports
        os.kill(pid, signal.SIGKILL)
        run.wait(lambda pid=pid: pid not in run.processes(), "its death")
    run.thaw()
    assert run.end() == 0, run.err
    assert run.result()["restarts"] == 1
    assert {e["how"] for e in run.events("worker_started")} == {"fork"}
    run.assert_nothing_left()


def test_more_ranks_than_a_socket_holds_packets_are_forked(start):
    run = start("muster-train", "--steps", 0, ranks=320)
    assert run.end(limit=100) == 0, run.err
    assert {e["how"] for e in run.events("worker_started")} == {"fork"}
    assert len(run.events("worker_started")) == 320
    run.assert_nothing_left()


def test_workers_find_the_users_own_limit_of_descriptors(start):
    def prepare():
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    # The run itself needs some six for each rank.
    run = start("/bin/sh", "-c", "ulimit -Sn", ranks=120, prepare=prepare)
    assert run.end() == 0, run.err
    assert {run.log(rank) for rank in range(120)} == {b"300\n"}


def test_a_copy_that_cannot_become_a_worker_says_why(start, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    run = start("muster-train", "--steps", 100000, prepare=lambda: os.chdir(home))
    run.wait_step(20)
    home.rmdir()
    run.kill(1)
    assert run.end() == 127
    assert "could not be started: No such file" in run.fault()["cause"]
    assert run.result()["restarts"] == 1


def test_a_death_while_the_shim_was_stopped_counts_from_the_last_sign_of_life(start):
    run = start("muster-train", "--steps", STEPS, "--step-ms", 2, "--every", 25)
    run.wait_step(60)
    shim = run.shim()
    os.kill(shim, signal.SIGSTOP)
    run.kill(0)
    time.sleep(1.5)  # that time passes is what is tested
    os.kill(shim, signal.SIGCONT)
    assert run.end() == 0, run.err
    assert run.result()["lost"]["detect_s"] > 1.3


def test_a_shim_with_few_descriptors_does_not_spin(start):
    run = start("muster-train", "--steps", 100000)
    run.wait_step(20)
    shim = run.shim()
    resource.prlimit(shim, resource.RLIMIT_NOFILE, (24, 24))

    def ticks() -> int:
        return sum(map(int, pathlib.Path(f"/proc/{shim}/stat").read_text().rsplit(")")[-1].split()[11:13]))

    before = ticks()
    run.wait_step(run.steps(0)[-1]["step"] + 1000)
    assert ticks() - before < 20
    run.kill(1)
    run.wait_event("fault")
    run.process.send_signal(signal.SIGTERM)
    run.end()
    run.assert_nothing_left()


def test_a_zygote_that_does_not_answer_is_bypassed_soon(start):
    run = start("muster-train", "--steps", STEPS, "--step-ms", 2, "--every", 25)
    run.wait_step(60)
    os.kill(run.zygote(), signal.SIGSTOP)
    run.kill(1)
    assert run.end(limit=20) == 0, run.err
    assert "rank 1 killed by SIGKILL" in run.err.split("not recovered yet")[0]
    assert run.err.count("does not answer and was killed; workers are executed from now on") == 1
    assert {e["how"] for e in run.events("worker_started") if e["gen"] > 1} == {"exec"}
    run.assert_nothing_left()


def test_a_shim_and_a_zygote_that_pause_together_are_not_mute(start):
    run = start("muster-train", "--steps", STEPS, "--step-ms", 2, "--every", 25)
    run.wait_step(60)
    shim, zygote = run.shim(), run.zygote()
    for pid in (zygote, shim):
        os.kill(pid, signal.SIGSTOP)
    run.kill(1)
    time.sleep(5.5)  # longer than a zygote may be silent: that time passes is what is tested
    for pid in (shim, zygote):
        os.kill(pid, signal.SIGCONT)
    assert run.end() == 0, run.err
    assert {e["how"] for e in run.events("worker_started")} == {"fork"}


def test_a_broken_zygote_means_exec_and_is_said_once(start, bin_with_stepper, script, python):
    # The trainer's name on a script that does not know --zygote.
    trainer = bin_with_stepper / "muster-train"
    trainer.unlink()
    trainer.write_text(f"#!{python}\nimport sys\nsys.exit(2 if '--zygote' in sys.argv else 0)\n")
    trainer.chmod(0o755)
    run = start("muster-train", "work")
    assert run.end() == 0, run.err
    assert run.err.count("workers are executed from now on") == 1
    assert {e["how"] for e in run.events("worker_started")} == {"exec"}
    run.assert_nothing_left()

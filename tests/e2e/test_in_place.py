"""A rank of the trainer dies and the others keep their process and what is in its memory: no finished step is done again, and the
final weights are those of a run that nobody disturbed."""

import contextlib
import json
import os
import pathlib
import random
import resource
import signal
import struct
import subprocess
import time

import pytest

SIDE, IMAGES = 14, 64
TRAINER = ["--patch", 7, "--width", 16, "--blocks", 1, "--batch", 16, "--decode-threads", 0, "--log-every", 500]


@pytest.fixture
def data(muster, tmp_path):
    """Random pictures of two classes, with a test split."""
    rng = random.Random(1)
    source = tmp_path / "idx"
    source.mkdir()
    for split in ("train", "t10k"):
        pixels = rng.randbytes(IMAGES * SIDE * SIDE)
        (source / f"{split}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, IMAGES, SIDE, SIDE) + pixels)
        (source / f"{split}-labels-idx1-ubyte").write_bytes(
            struct.pack(">2I", 0x801, IMAGES) + bytes(i % 2 for i in range(IMAGES))
        )
    done = muster("data", "pack", source, tmp_path / "data")
    assert done.code == 0, done.err
    return tmp_path / "data"


@pytest.fixture
def train(start, programs, data):
    """train(ranks, steps, flags…) → a run of the real trainer that saves now and then."""

    def begin(ranks: int, steps: int, *words, every=50, flags=("--max-restarts", 30), folder=None):
        command = [
            "muster-train",
            "vit",
            "--data",
            data,
            *TRAINER,
            "--steps",
            steps,
            "--checkpoint-every",
            every,
            *words,
        ]
        return start(*command, ranks=ranks, flags=flags, folder=folder, binaries=programs)

    return begin


@pytest.fixture
def equals_undisturbed(train, muster, tmp_path):
    """Whether a run ended with the bits of one that nobody disturbed."""

    def check(run, ranks: int, steps: int, *words, **more):
        whole = train(ranks, steps, *words, folder=tmp_path / "whole", **more)
        assert whole.end(120) == 0, whole.err
        done = muster("ckpt", "digest", run.folder, whole.folder)
        assert done.code == 0 and done.out.endswith("bitwise equal\n"), done.out

    return check


def living(run) -> dict[int, int]:
    """rank → pid of its newest process."""
    return {event["rank"]: event["pid"] for event in run.events("worker_started")}


@pytest.mark.parametrize("victim", [0, 1])
def test_the_survivor_keeps_its_process_and_no_step_is_done_again(train, equals_undisturbed, victim):
    run = train(2, 600)
    run.wait_step(120)
    run.kill(victim)
    assert run.end(120) == 0, run.err
    assert [(e["rank"], e["gen"]) for e in run.events("worker_started")] == [(0, 1), (1, 1), (victim, 2)]
    assert [e["kept"] for e in run.events("ranks_quiesced")] == [1]
    result = run.result()
    assert result["restarts"] == 1 and result["lost"]["replay_s"] == 0
    for rank in (0, 1):
        steps = [record["step"] for record in run.steps(rank)]
        assert len(steps) == len(set(steps)), "a step was done again"
    assert "; 1 rank kept; recovered in" in run.err
    fault = run.fault()
    assert "in place" in json.dumps(fault)
    run.assert_nothing_left()
    equals_undisturbed(run, 2, 600)


def test_another_coordinator_recovers_in_place_as_well(train, equals_undisturbed):
    run = train(2, 600)
    run.wait_step(60)
    os.kill(run.coordinator(), signal.SIGKILL)
    run.wait_event("coordinator_back")
    run.kill(1)
    assert run.end(120) == 0, run.err
    assert [e["kept"] for e in run.events("ranks_quiesced")] == [1]
    assert "; 1 rank kept; recovered in" in run.err
    for rank in (0, 1):
        assert [record["step"] for record in run.steps(rank)] == list(range(1, 601))
    run.assert_nothing_left()
    equals_undisturbed(run, 2, 600)


@pytest.mark.parametrize("coordinator_too", [False, True])
def test_a_shim_that_is_killed_twice_changes_no_bit(train, equals_undisturbed, coordinator_too):
    run = train(2, 600)
    for generation, step in ((1, 120), (2, 240)):
        run.wait_step(step, generation=generation)
        pids = [run.shim(), *([run.coordinator()] if coordinator_too else [])]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        run.wait_event("generation_started", gen=generation + 1)
    assert run.end(120) == 0, run.err
    assert [e["gen"] for e in run.events("fault")] == [1, 2]
    assert run.result()["restarts"] == 2
    run.assert_nothing_left()
    equals_undisturbed(run, 2, 600)


def test_two_of_four_that_die_at_once_are_both_replaced(train, equals_undisturbed):
    run = train(4, 400)
    run.wait_step(120)
    for rank in (1, 3):
        run.kill(rank)
    assert run.end(120) == 0, run.err
    started = [(e["rank"], e["gen"]) for e in run.events("worker_started")]
    assert started[4:] in ([(1, 2), (3, 2)], [(3, 2), (1, 2)])
    equals_undisturbed(run, 4, 400)


def test_a_replacement_that_dies_at_its_start_is_replaced_in_place_too(train, equals_undisturbed):
    run = train(2, 600)
    run.wait_step(120)
    run.kill(1)
    run.kill(1, generation=2)
    assert run.end(120) == 0, run.err
    assert [(e["rank"], e["gen"]) for e in run.events("worker_started")] == [(0, 1), (1, 1), (1, 2), (1, 3)]
    assert run.result()["restarts"] == 2
    equals_undisturbed(run, 2, 600)


@pytest.mark.parametrize("moment", ["ranks_quiesced", "generation_started", "worker_started"])
def test_a_survivor_that_dies_while_the_next_generation_starts_costs_no_other(train, equals_undisturbed, moment):
    run = train(4, 400)
    run.wait_step(120)
    run.kill(1)
    begin = {"ranks_quiesced": 1, "generation_started": 2, "worker_started": 5}[moment]
    run.wait_event(moment, count=begin)
    run.kill(0)
    assert run.end(120) == 0, run.err
    # Who only just loads is replaced once more; ranks 2 and 3 have what is in their memory.
    started = [(e["rank"], e["gen"]) for e in run.events("worker_started")]
    assert {e for e in started if e[0] in (2, 3)} == {(2, 1), (3, 1)}, started
    assert run.result()["restarts"] == 2 and run.result()["lost"]["replay_s"] == 0
    assert [e["rank"] for e in run.events("worker_exited") if e["cause"] == "fault"] == [1, 0]
    equals_undisturbed(run, 4, 400)


def test_a_rank_that_ends_by_an_error_of_its_own_is_the_one_that_is_blamed(train, data, equals_undisturbed):
    """Its group is closed as it ends: the others must not take that for a fault of theirs."""
    run = train(4, 600, "--eval-every", 20)
    run.wait_step(61)
    # It cannot open eval.jsonl or its part of the next checkpoint.
    resource.prlimit(run.pid(0), resource.RLIMIT_NOFILE, (3, 3))
    assert run.end(120) == 0, run.err
    assert {(e["rank"], e.get("code")) for e in run.events("worker_exited") if e["cause"] == "fault"} == {(0, 1)}
    assert run.events("ranks_quiesced"), run.err
    equals_undisturbed(run, 4, 600, "--eval-every", 20)


def test_another_run_cannot_take_the_folder_while_rank_0_is_replaced(train, tmp_path):
    words = ("--checkpoint-dir", tmp_path / "shared")
    owner = train(2, 1_000_000, *words)
    owner.wait_step(60)
    intruder = train(2, 3000, *words, flags=("--max-restarts", 0))
    lock = tmp_path / "shared" / ".lock"
    descriptors = pathlib.Path(f"/proc/{intruder.pid(0)}/fd")
    intruder.wait(lambda: any(file.resolve() == lock for file in descriptors.iterdir()), "who waits for the lock")
    owner.kill(0)
    assert intruder.end(60) == 5
    assert "in use by another run" in intruder.err
    owner.wait_event("ranks_ready", gen=2)
    owner.process.send_signal(signal.SIGTERM)
    owner.end()


def test_a_survivor_that_is_stopped_is_not_waited_for(train, equals_undisturbed):
    run = train(2, 600)
    run.wait_step(120)
    os.kill(run.pid(0), signal.SIGSTOP)
    run.kill(1)
    assert run.end(120) == 0, run.err
    assert [(e["rank"], e["gen"]) for e in run.events("worker_started")][2:] == [(0, 2), (1, 2)]
    assert not run.events("ranks_quiesced")
    equals_undisturbed(run, 2, 600)


@pytest.mark.parametrize("mode", ["canonical", "fast"])
def test_many_deaths_at_any_moment_change_no_bit(train, equals_undisturbed, mode):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    # A save at every third step and an evaluation at every fifth: most deaths fall into one.
    words = ("--mode", mode, "--eval-every", 5)
    steps = 600
    run = train(4, steps, *words, every=3)
    run.wait_step(10)
    kills = 0
    # Not at the end: whoever is killed there again and again before a step makes no progress, and that ends the run.
    while kills < 12 and run.process.poll() is None and run.steps(0)[-1]["step"] < steps - 100:
        time.sleep(rng.uniform(0.05, 0.4))
        rank = rng.randrange(4)
        # A pid may have gone by itself; it is ours as long as the run lives, because the shim reaps late.
        pid = living(run).get(rank)
        if pid in run.processes():
            os.kill(pid, signal.SIGKILL)
            kills += 1
    assert run.end(300) == 0, run.err
    assert run.result()["restarts"] >= 3
    assert run.events("ranks_quiesced"), "none was recovered from in place"
    run.assert_nothing_left()
    equals_undisturbed(run, 4, steps, *words, every=3)


def test_faults_all_the_time_change_no_bit(train, equals_undisturbed):
    """Ranks and coordinators are killed, ranks are stopped, one of them each second or two; the seed is printed."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance, faults, began = random.Random(seed), [], time.monotonic()
    # Two coordinators and no more: a fourth within a minute would end the run.
    kinds = ["kill", "kill", "kill", "stop", "coordinator", "coordinator"]
    chance.shuffle(kinds)
    steps = 4000
    run = train(4, steps, every=200, flags=("--max-restarts", 1000))
    run.wait_step(20)
    while run.process.poll() is None:
        kind = kinds[len(faults)] if len(faults) < len(kinds) else chance.choice(["kill", "kill", "stop"])
        with contextlib.suppress(ProcessLookupError, KeyError):  # it may end meanwhile
            if kind == "coordinator":
                os.kill(run.coordinator(), signal.SIGKILL)
            elif (pid := living(run)[chance.randrange(4)]) in run.processes():
                os.kill(pid, signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
            faults.append(kind)
        assert time.monotonic() - began < 300, run.events()[-5:]
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.process.wait(chance.uniform(1, 2))
    assert run.end() == 0, run.err
    print(faults)
    # A rank that is killed while nobody knows yet that another is stopped belongs to the fault of that one.
    assert len(faults) >= len(kinds) and len(run.events("fault")) >= 2
    for rank in range(4):
        assert run.steps(rank)[-1]["step"] == steps
    run.assert_nothing_left()
    equals_undisturbed(run, 4, steps)

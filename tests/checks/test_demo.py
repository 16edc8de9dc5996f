"""The demo must fail when what it says is not so: a run folder is made, then one thing in it is made untrue."""

import copy
import importlib.util
import json
import pathlib

import pytest

DEMO = pathlib.Path(__file__).resolve().parents[2] / "examples" / "demo.py"
STEPS = 40
PIDS = {(1, 0): 100, (1, 1): 101, (2, 0): 102, (2, 1): 103}


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["demo"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def good_run() -> dict:
    """Rank 1 was killed after step 26; the checkpoint of step 20 was the newest."""
    events = [{"event": "run_started", "t_ns": 0}]
    events += [{"event": "generation_started", "gen": gen, "t_ns": gen} for gen in (1, 2)]
    events += [{"event": "worker_started", "gen": g, "rank": r, "pid": pid} for (g, r), pid in PIDS.items()]
    events += [
        {"event": "worker_exited", "gen": 1, "rank": 1, "pid": 101, "signal": 9, "cause": "fault"},
        {"event": "fault", "gen": 1, "rank": 1},
        {"event": "run_ended", "t_ns": 10**9},
    ]
    numbers = [(step, 1) for step in range(1, 27)] + [(step, 2) for step in range(21, STEPS + 1)]
    steps = [{"step": step, "gen": gen, "loss": 1 / step} for step, gen in numbers]
    return {
        "events": events,
        "steps": [steps, copy.deepcopy(steps)],
        "result": {"state": "SUCCEEDED", "exit_code": 0, "restarts": 1},
    }


def written(demo, tmp_path, run: dict):
    """The run as the demo reads it from its folder, a torn line in each file of steps."""
    (tmp_path / "steps").mkdir()
    lines = lambda records: "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "events.jsonl").write_text(lines(run["events"]))
    for rank, steps in enumerate(run["steps"]):
        (tmp_path / "steps" / f"rank-{rank}.jsonl").write_text(lines(steps) + '{"torn')
    (tmp_path / "result.json").write_text(json.dumps(run["result"]))
    return demo.Run.read(tmp_path)


def judge(demo, tmp_path, run: dict) -> None:
    finished = written(demo, tmp_path, run)
    demo.check_fault(finished, demo.Fault(rank=1, step=26), 101)
    demo.check_replayed(finished)
    demo.check_finished(finished, STEPS)


def test_a_true_run_passes(demo, tmp_path):
    judge(demo, tmp_path, good_run())


def without(event: str):
    return lambda run: run["events"].remove(next(e for e in run["events"] if e["event"] == event))


BREAKS = {
    "two restarts": lambda run: run["result"].update(restarts=2),
    "a third generation": lambda run: run["events"].append({"event": "generation_started", "gen": 3}),
    "no fault on record": without("fault"),
    "two faults": lambda run: run["events"].append({"event": "fault", "gen": 2, "rank": 0}),
    "killed by something else": lambda run: run["events"][7].update(signal=6),
    "said to be stopped": lambda run: run["events"][7].update(cause="stopped"),
    "nothing replayed on one rank": lambda run: run.update(
        steps=[run["steps"][0], [s for s in run["steps"][1] if s["gen"] == 1 or s["step"] > 26]]
    ),
    "a step is missing": lambda run: run.update(
        steps=[[s for s in run["steps"][0] if s["step"] != 33], run["steps"][1]]
    ),
    "the run failed": lambda run: run["result"].update(state="FAILED"),
    "an exit code": lambda run: run["result"].update(exit_code=1),
}


@pytest.mark.parametrize("name", BREAKS)
def test_an_untrue_claim_fails(demo, tmp_path, name):
    run = good_run()
    BREAKS[name](run)
    with pytest.raises(demo.ClaimFailed):
        judge(demo, tmp_path, run)


def kept_run() -> dict:
    """Rank 1 alone was started again, and no step was done twice."""
    run = good_run()
    run["events"] = [
        e for e in run["events"] if not (e["event"] == "worker_started" and e["gen"] == 2 and e["rank"] == 0)
    ]
    run["steps"] = [[s for s in steps if (s["gen"] == 1) == (s["step"] <= 26)] for steps in run["steps"]]
    return run


def judge_kept(demo, tmp_path, run: dict) -> None:
    finished = written(demo, tmp_path, run)
    demo.check_kept(finished, demo.Fault(rank=1, step=26))
    demo.check_finished(finished, STEPS)


def test_a_run_that_kept_a_rank_passes(demo, tmp_path):
    judge_kept(demo, tmp_path, kept_run())


@pytest.mark.parametrize("lie", ["the other was started too", "a step was done twice"])
def test_a_run_that_did_not_keep_its_rank_fails(demo, tmp_path, lie):
    run = kept_run()
    if lie == "a step was done twice":
        run["steps"][0].append(dict(run["steps"][0][20], gen=2))
    else:
        run["events"] = good_run()["events"]
    with pytest.raises(demo.ClaimFailed):
        judge_kept(demo, tmp_path, run)


def test_the_same_seed_draws_the_same_fault_between_checkpoints(demo):
    for seed in range(500):
        fault = demo.draw_fault(seed, 600, 50)
        assert fault == demo.draw_fault(seed, 600, 50)
        assert fault.rank in (0, 1)
        assert 200 <= fault.step < 440
        assert 16 <= fault.step % 50 < 40
    assert {demo.draw_fault(seed, 600, 50).rank for seed in range(20)} == {0, 1}

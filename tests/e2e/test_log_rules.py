"""Log rules: what workers' lines say ends, restarts or only tells; everything else is left alone."""

import json
import time

import pytest

FIRST = '[ "$TORCHELASTIC_RESTART_COUNT" = 0 ]'
# A worker that would stay for ever, and is gone with its shell.
STAY = "exec sleep 600"


@pytest.fixture
def ruled(start, tmp_path):
    """ruled(SCRIPT, [rule, …], ranks=2) → Run of a job whose ranks are `sh -c SCRIPT` under those rules."""

    def begin(script, rules, ranks=2):
        spec = {"command": ["sh", "-c", script], "logRules": rules}
        job = {"apiVersion": "muster/v1", "kind": "Job", "metadata": {"name": "ruled"}, "spec": spec}
        (tmp_path / "job.yaml").write_text(json.dumps(job))
        return start(job=tmp_path / "job.yaml", ranks=ranks, flags=["--grace", "1"])

    return begin


def test_a_loss_that_is_no_number_restarts_the_rank(ruled):
    script = f'if [ "$RANK" = 1 ] && {FIRST}; then echo loss=nan; {STAY}; fi; echo loss=0.25; {FIRST} && {STAY}; exit 0'
    run = ruled(script, [{"name": "loss", "pattern": r"loss=(\S+)"}])
    assert run.end() == 0, run.err
    fault = run.fault()
    assert (fault["rank"], fault["layer"], fault["log_rule"]) == (1, "log-rule", "loss")
    assert fault["cause"] == "killed by log rule 'loss': 'nan' is not a number"
    (fired,) = run.events("log_rule")
    assert (fired["rule"], fired["rank"], fired["gen"], fired["action"]) == ("loss", 1, 1, "restart-process")
    assert "muster: log rule 'loss': rank 1: 'nan' is not a number; it is killed\n" in run.err
    assert "not acted on" not in run.err
    died = next(e for e in run.events("worker_exited") if e["rank"] == 1 and e["gen"] == 1)
    assert died["signal"] == "SIGKILL" and 0 <= died["t_ns"] - fired["seen_ns"] < 5e9
    run.assert_nothing_left()


def test_a_line_that_does_not_come_any_more_is_seen(ruled):
    script = f"for i in 1 2 3; do echo step $i; done; {FIRST} && {STAY}; exit 0"
    run = ruled(script, [{"name": "steps", "pattern": "^step", "startWithin": "20s", "every": "300ms"}], ranks=1)
    assert run.end() == 0, run.err
    (fired,) = run.events("log_rule")
    assert fired["why"] == "no line matched for 300ms; rank 0 showed the last one"
    assert run.fault()["log_rule"] == "steps"
    assert run.result()["restarts"] == 1


def test_a_first_line_that_does_not_come_is_seen(ruled):
    run = ruled(
        f"echo hello; {FIRST} && {STAY}; echo ready", [{"name": "r", "pattern": "ready", "startWithin": "300ms"}], 1
    )
    assert run.end() == 0, run.err
    assert [fired["why"] for fired in run.events("log_rule")] == ["no line matched within 300ms of the start"]


def test_a_stop_pattern_ends_a_rule(ruled):
    rule = {"name": "steps", "pattern": "step", "every": "200ms", "stop": "training done"}
    run = ruled("echo step 1; echo training done; sleep 1", [rule])
    assert run.end() == 0, run.err
    assert not run.events("log_rule") and not run.events("fault")


def test_scope_all_names_the_rank_that_is_missing(ruled):
    script = f'[ "$RANK" = 2 ] && {FIRST} && {STAY}; for i in 1 2 3; do echo step $i; sleep 0.1; done; {FIRST} && {STAY}; exit 0'
    run = ruled(script, [{"name": "steps", "pattern": "step", "startWithin": "1s", "scope": "all"}], ranks=3)
    assert run.end() == 0, run.err
    (fired,) = run.events("log_rule")
    assert fired["why"] == "not every rank showed a matching line within 1s of the start; missing: 2"
    assert run.fault()["rank"] == 2


def test_a_rule_on_stderr_hears_stderr_only(ruled):
    script = (
        f'{FIRST} || exit 0; echo CUDA error: none; [ "$RANK" = 1 ] && sleep 0.3 && echo CUDA error: here >&2; {STAY}'
    )
    run = ruled(script, [{"name": "cuda", "pattern": "CUDA error.*", "fault": True, "stream": "stderr"}])
    assert run.end() == 0, run.err
    assert [(fired["rank"], fired["why"]) for fired in run.events("log_rule")] == [(1, "'CUDA error: here' matched")]


def test_a_rule_in_hyperpods_words_restarts_the_job(ruled):
    script = f"{FIRST} || exit 0; for i in 1 2 3 4 5; do echo samples/sec: 7$i.5; done; {STAY}"
    rule = {
        "name": "LowThroughput",
        "logPattern": r".*samples\/sec: (\d+(\.\d+)?).*",
        "metricThreshold": 80,
        "operator": "lteq",
        "metricEvaluationDataPoints": 4,
        "action": "restart-job",
        "scope": "rank0",
    }
    run = ruled(script, [rule])
    assert run.end() == 0, run.err
    (fired,) = run.events("log_rule")
    assert fired["why"] == "74.5, the last of 4 values in a row, <= 80"
    killed = [e["rank"] for e in run.events("worker_exited") if e["gen"] == 1 and e["signal"] == "SIGKILL"]
    assert sorted(killed) == [0, 1]


def test_a_rule_can_end_the_run(ruled):
    run = ruled(
        f"echo disk is full; {STAY}", [{"name": "disk", "pattern": "disk is full", "fault": True, "action": "fail"}], 1
    )
    assert run.end() == 1
    assert run.result()["reason"] == "log rule 'disk': rank 0: 'disk is full' matched"
    run.assert_nothing_left()


def test_a_rule_that_only_tells_leaves_the_rank_alone(ruled):
    rules = [
        {"name": "warn", "pattern": "slow disk", "fault": True, "action": action}
        for action in ("notify", "dump", "drain-node")
    ]
    for number, rule in enumerate(rules):
        rule["name"] += str(number)
    run = ruled("echo slow disk; echo slow disk; sleep 0.5", rules, 1)
    assert run.end() == 0, run.err
    assert [fired["rule"] for fired in run.events("log_rule")] == ["warn0", "warn1", "warn2"]
    assert run.err.count("nothing is done about it") == 2
    assert run.err.count("stacks are taken") == 1
    stacks = json.loads((run.folder / run.events("stacks")[0]["file"]).read_text())
    assert [process["rank"] for process in stacks["processes"]] == [0]
    assert stacks["processes"][0]["threads"], stacks
    assert not run.events("fault")


def test_bytes_of_every_kind_pass(ruled):
    zeros = "head -c 200000 /dev/zero"
    odd = "printf 'a\\0b \\377\\376 \\rloss=1\\r\\n'"
    script = f"{FIRST} || exit 0; {odd}; {zeros}; printf '\\nx \\0 loss=\\033[31mnan\\n'; {STAY}"
    run = ruled(script, [{"name": "loss", "pattern": r"^x.*loss=(.*)$"}], 1)
    assert run.end() == 0, run.err
    (fired,) = run.events("log_rule")
    assert fired["why"] == "'nan' is not a number"
    assert "\x1b" not in run.err


def test_muster_that_was_stopped_does_not_blame_its_workers(ruled):
    script = "for i in $(seq 60); do echo step $i; sleep 0.1; done"
    run = ruled(script, [{"name": "steps", "pattern": "step", "every": "1s"}], 1)
    run.wait(lambda: (run.folder / "logs/rank-0/gen-1.stdout.log").exists(), "a log")
    run.freeze()
    time.sleep(2.5)  # that time passes is what is tested
    run.thaw()
    assert run.end() == 0, run.err
    assert not run.events("log_rule"), run.events("log_rule")

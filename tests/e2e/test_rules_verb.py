"""`muster rules test`: when each rule would have fired on old logs, and what is said when nothing can be said."""

import json

import pytest

JOB = """apiVersion: muster/v1
kind: Job
metadata: {name: old}
spec:
  command: [train]
  logRules:
    - {name: loss, pattern: 'loss=(\\S+)'}
    - {name: steps, logPattern: '.*step.*', expectedStartCutOffInSeconds: 30, expectedRecurringFrequencyInSeconds: 10}
"""
STAMPED = (
    "2026-11-29 21:38:14,123 hello\n2026-11-29 21:38:20,000 step 1 loss=2\n2026-11-29 21:38:41,500 step 2 loss=nan\n"
)


@pytest.fixture
def rules(muster, tmp_path):
    (tmp_path / "job.yaml").write_text(JOB)

    def test(*words):
        return muster("rules", "test", tmp_path / "job.yaml", *words)

    return test


def test_it_says_when_each_rule_would_have_fired(rules, tmp_path):
    log = tmp_path / "old.log"
    log.write_text(STAMPED)
    done = rules(log)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "loss: 2 matches, would have fired once",
        f"  2026-11-29T21:38:41.500Z  generation 1, rank 0, {log}:3: 'nan' is not a number; restart-process",
        "steps: 1 match, would have fired once",
        f"  2026-11-29T21:38:30.000Z  generation 1, rank 0, before {log}:3: "
        "no line matched for 10s; rank 0 showed the last one; restart-process",
    ]
    assert "3 lines, from 2026-11-29T21:38:14.123Z to 2026-11-29T21:38:41.500Z" in done.err


def test_a_folder_stands_for_the_logs_of_all_ranks(rules, tmp_path):
    folder = tmp_path / "run" / "logs" / "rank-1"
    folder.mkdir(parents=True)
    (folder / "gen-2.stderr.log").write_bytes(b"\xff\x00 loss=oops\r\n")
    done = rules(tmp_path / "run", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["times"] is False and document["lines"] == 1
    (firing,) = document["rules"][0]["firings"]
    assert (firing["gen"], firing["rank"], firing["line"], firing["at"]) == (2, 1, 1, None)
    assert firing["why"] == "'oops' is not a number"
    assert document["rules"][1] == {"name": "steps", "matches": 0, "firings": []}


def test_a_log_without_time_stamps_is_called_that(rules, tmp_path):
    (tmp_path / "old.log").write_text("step 1 loss=1\n")
    done = rules(tmp_path / "old.log")
    assert done.code == 0
    assert "none of which begins with a time stamp: startWithin and every were not judged" in done.err


def test_what_cannot_be_tested_is_an_error_in_json_too(rules, muster, tmp_path):
    done = rules(tmp_path / "nosuch.log", "--json")
    assert done.code == 3 and json.loads(done.out)["error"]["code"] == "not_found"
    (tmp_path / "job.yaml").write_text(JOB.split("  logRules")[0])
    done = rules(tmp_path / "job.yaml")
    assert done.code == 2 and "has no spec.logRules" in done.err
    (tmp_path / "job.yaml").write_text(JOB.replace("loss=(", "(?<=a)loss=("))
    done = rules(tmp_path / "job.yaml")
    assert done.code == 2
    assert (
        f"{tmp_path}/job.yaml:7:29: 'spec.logRules[0].pattern' is not a pattern that RE2 takes: look-behind '(?<='"
        in done.err
    )

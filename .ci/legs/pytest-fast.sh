#!/usr/bin/env bash
source "$(dirname "$0")/../lib.sh"
.ci/build-all.sh
# What is quick, and touches each verb once. Whole runs with faults, hangs, several nodes and zygotes wait for real time;
# they are in the leg pytest. A file at a time goes to a worker: module fixtures are made once.
e2e=(checkpoints command_line doctor dump_verb hostile_text import_verb log_rules logs_verb report rules_verb
  run_failed_starts run_job_file)
files=("${e2e[@]/#/tests/e2e/test_}")
.venv/bin/python -m pytest tests/checks "${files[@]/%/.py}" -q -m 'not slow' --numprocesses 2 --dist loadfile

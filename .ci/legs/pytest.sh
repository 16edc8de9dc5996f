#!/usr/bin/env bash
source "$(dirname "$0")/../lib.sh"
.ci/build-all.sh
# A file at a time goes to a worker: module fixtures are made once.
.venv/bin/python -m pytest tests --ignore tests/docs -q --numprocesses 2 --dist loadfile

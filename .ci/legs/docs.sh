#!/usr/bin/env bash
source "$(dirname "$0")/../lib.sh"
python3 .ci/checks/links.py
configure release -DMUSTER_TESTS=ON -DMUSTER_BENCH=ON
compile release programs
.venv/bin/python -m pytest tests/docs -q

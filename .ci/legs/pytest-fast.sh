#!/usr/bin/env bash
source "$(dirname "$0")/../lib.sh"
.ci/build-all.sh
.venv/bin/python -m pytest tests --ignore tests/docs -q -m 'not slow'

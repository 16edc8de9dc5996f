#!/usr/bin/env bash
# The demo from nothing: installs what is missing, builds the four programs, shows them at work.
source "$(dirname "$0")/lib.sh"
started=$SECONDS
say "demo: 1. packages and torch (minutes on a fresh machine, nothing when they are there)"
say "      2. build the four programs (about 10 min on two quiet cores, 23 on busy ones, seconds the second time)"
say "      3. the demo itself (about 2 min on two quiet cores)"
.ci/setup.sh build
.ci/build.sh release
say "demo: ready after $((SECONDS - started)) s"
exec .venv/bin/python examples/demo.py --build build/release "$@"

#!/usr/bin/env bash
# clang-tidy compiles for itself: it needs the compile commands and the one header that is generated, no build.
source "$(dirname "$0")/../lib.sh"
configure release -DMUSTER_TESTS=ON -DMUSTER_BENCH=ON
compile release muster_arrow_schema_made
.ci/tidy.py

#!/usr/bin/env bash
# Release with everything in it: what the tests, the benchmarks and several legs run.
source "$(dirname "$0")/lib.sh"
configure release -DMUSTER_TESTS=ON -DMUSTER_BENCH=ON
compile release

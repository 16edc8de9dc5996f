#!/usr/bin/env bash
source "$(dirname "$0")/../lib.sh"
configure release -DMUSTER_TESTS=ON -DMUSTER_BENCH=ON
compile release self_contained_headers
echo "headers: $(find build/release/headers -name '*.cc' | wc -l) compile alone"

#!/usr/bin/env bash
source "$(dirname "$0")/../lib.sh"
configure asan
compile asan
ctest --preset asan --parallel "$(jobs)"
.ci/fuzz.sh 20

#!/usr/bin/env bash
source "$(dirname "$0")/../lib.sh"
configure gcc
compile gcc
ctest --preset gcc --parallel "$(jobs)"

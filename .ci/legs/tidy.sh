#!/usr/bin/env bash
source "$(dirname "$0")/../lib.sh"
.ci/build-all.sh
.ci/tidy.py

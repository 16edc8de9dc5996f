#!/usr/bin/env bash
# Rewrites what git tracks, or would track, in the house format.
source "$(dirname "$0")/lib.sh"
git ls-files -z --cached --others --exclude-standard '*.cc' '*.h' '*.c' |
  xargs -0 -r -P "$(jobs)" -n 20 clang-format-19 -i
.venv/bin/ruff format --quiet .
.venv/bin/ruff check --quiet --fix . || true
git diff --stat

#!/usr/bin/env bash
source "$(dirname "$0")/../lib.sh"
# What needs no compiler: fast, so it goes first. Runs all of them and fails if one did.
failed=()
check() {
  local name=$1
  shift
  "$@" || failed+=("$name")
}
tracked() { git ls-files -z --cached --others --exclude-standard "$@"; }

format_check() { tracked '*.cc' '*.h' '*.c' | xargs -0 -r -P "$(jobs)" -n 20 clang-format-19 --dry-run -Werror; }
shell_check() {
  { tracked '*.sh'; printf '.ci/run\0'; } | xargs -0 -r shellcheck -x -P SCRIPTDIR
}

check format format_check
check layering python3 .ci/checks/layering.py
check sizes python3 .ci/checks/sizes.py
check words python3 .ci/checks/words.py
check links python3 .ci/checks/links.py
check shellcheck shell_check
check ruff .venv/bin/ruff check --quiet .
check ruff-format .venv/bin/ruff format --quiet --check .
if [ "${#failed[@]}" -gt 0 ]; then fail "failed: ${failed[*]}"; fi
echo "checks: format, layering, sizes, words, links, shellcheck, ruff hold"

# Sourced by the scripts of this folder: the repository root as the working folder, and how we talk.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '%s\n' "$*" >&2; }
step() { printf '\n== %s\n' "$*" >&2; }
fail() {
  printf 'error: %s\n' "$1" >&2
  if [ $# -gt 1 ]; then printf '  %s\n' "$2" >&2; fi
  exit 1
}

# configure PRESET [-D…]: configures when there is no build yet or the answer to a -D differs.
configure() {
  local preset=$1
  shift
  local cache=build/$preset/CMakeCache.txt wanted have
  if [ -f "build/$preset/build.ninja" ]; then
    for wanted in "$@"; do
      have=$(sed -n "s/^$(printf '%s' "${wanted#-D}" | cut -d= -f1):[A-Z]*=//p" "$cache")
      if [ "$have" != "${wanted#*=}" ]; then have=differs && break; fi
    done
    if [ "${have:-}" != differs ]; then return 0; fi
  fi
  cmake --preset "$preset" "$@" >"build-$preset.log" 2>&1 || {
    cat "build-$preset.log" >&2
    rm -f "build-$preset.log"
    fail "cmake could not configure '$preset'" "run 'make setup' for missing packages; the cache is $cache"
  }
  mkdir -p "build/$preset" && mv "build-$preset.log" "build/$preset/configure.log"
}

jobs() { echo "${MUSTER_JOBS:-$(nproc)}"; }

# compile PRESET [TARGET…]: warnings, errors and how far it is, on a terminal in ninja's own line, else once a minute.
compile() {
  local preset=$1
  shift
  local targets=()
  if [ $# -gt 0 ]; then targets=(--target "$@"); fi
  local building=(cmake --build --preset "$preset" --parallel "$(jobs)" "${targets[@]}")
  if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
    "${building[@]}"
  else
    NINJA_STATUS='[%f/%t] ' "${building[@]}" | .ci/progress.py
  fi
}

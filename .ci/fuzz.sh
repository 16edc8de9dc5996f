#!/usr/bin/env bash
# fuzz.sh SECONDS [NAME]: runs each harness for so long from its corpus, as many at once as there
# are cores. A finding stays in build/fuzz/NAME/ and fails the run.
source "$(dirname "$0")/lib.sh"
seconds=$1 only=${2:-}
if [ -n "$only" ] && [ ! -f "fuzz/${only}_fuzz.cc" ]; then
  fail "there is no fuzz harness $only" "one of $(cd fuzz && echo *_fuzz.cc | sed 's/_fuzz\.cc//g')"
fi
say "building the harnesses with sanitizers; the first time takes minutes"
configure asan
compile asan
shopt -s nullglob

run_one() {
  local program=$1 name out rc=0
  name=$(basename "$program" _fuzz)
  out=build/fuzz/$name
  mkdir -p "$out/found" "fuzz/corpus/$name"
  "$program" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$out/crash-" \
    "$out/found" "fuzz/corpus/$name" >"$out/log" 2>&1 || rc=$?
  if [ "$rc" != 0 ]; then
    tail -40 "$out/log"
    echo "fuzz $name: FAILED, input kept: $(find "$out" -maxdepth 1 -name 'crash-*' -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2)"
    return 1
  fi
  echo "fuzz $name: ok, $(grep -o 'Done [0-9]* runs in [0-9]* second' "$out/log" | tail -1)s," \
    "$(find "fuzz/corpus/$name" -type f | wc -l) seeds"
}
export -f run_one

programs=(build/asan/fuzz/"${only:-*}"_fuzz)
if [ -z "$only" ]; then programs=(build/asan/fuzz/*_fuzz); fi
if [ "${#programs[@]}" = 0 ]; then fail "no fuzz harness was built${only:+ by the name of $only}"; fi
for program in "${programs[@]}"; do
  name=$(basename "$program" _fuzz)
  [ -n "$(ls "fuzz/corpus/$name" 2>/dev/null)" ] || fail "fuzz/corpus/$name has no seeds"
done
# shellcheck disable=SC2016 # expanded by the inner shell
printf '%s\0' "${programs[@]}" | xargs -0 -P "$(jobs)" -I{} bash -c 'run_one "$1" "$2"' _ {} "$seconds"
echo "fuzz: ${#programs[@]} harnesses, $seconds s each, no finding"

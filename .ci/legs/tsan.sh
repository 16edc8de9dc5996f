#!/usr/bin/env bash
source "$(dirname "$0")/../lib.sh"
# The folders that have threads, and what they stand on.
threaded='base|os|coll|data|agent'
configure tsan
mapfile -t targets < <(ninja -C build/tsan -t targets all | sed -nE "s/^(($threaded)[a-z_]*_test): phony$/\1/p")
[ "${#targets[@]}" -gt 0 ] || fail "no test program of $threaded was found"
compile tsan "${targets[@]}"
ctest --preset tsan --parallel "$(jobs)" --label-regex "^($threaded)"

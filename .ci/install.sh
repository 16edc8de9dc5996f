#!/usr/bin/env bash
# install.sh PREFIX: the programs, libmuster_coll.so with its header, the pages, and the libtorch files that muster-train needs.
source "$(dirname "$0")/lib.sh"
prefix=$1
.ci/setup.sh build
.ci/build.sh release
cmake --install build/release --prefix "$prefix" >build/release/install.log || {
  tail -5 build/release/install.log >&2
  fail "nothing or not all was installed under $prefix" "is it writable?"
}
say "installed under $prefix: $(sed -n 's/^-- \(Installing\|Up-to-date\): //p' build/release/install.log | grep -c .) files, $(du -sh "$prefix/lib" | cut -f1) of libraries with libtorch's"
say "programs: $(cd "$prefix/bin" && echo muster*); for C: $(cd "$prefix" && find . -name 'libmuster_coll.so' -o -name 'muster_coll.h' | sort | tr '\n' ' '); pages: share/doc/muster"
"$prefix/bin/muster" --version >/dev/null || fail "$prefix/bin/muster does not start"

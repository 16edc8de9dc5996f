#!/usr/bin/env bash
# build.sh PRESET: configures with all switches on and builds what users run.
source "$(dirname "$0")/lib.sh"
preset=${1:-release}
# A tree that has tests keeps them; a first build of only the programs needs no test packages.
if [ ! -f "build/$preset/build.ninja" ]; then
  configure "$preset" -DMUSTER_TESTS=OFF -DMUSTER_BENCH=OFF
fi
compile "$preset" programs
say "built: $(cd "build/$preset/bin" && echo * | sed 's/ /, /g') in build/$preset/bin"

#!/usr/bin/env bash
source "$(dirname "$0")/../lib.sh"
# What has threads: these folders and what they use.
threaded=(base os coll data agent)
configure tsan
targets=()
for name in "${threaded[@]}"; do
  if [ -f "src/$name/CMakeLists.txt" ]; then targets+=("${name}_test"); fi
done
compile tsan "${targets[@]}"
ctest --preset tsan --parallel "$(jobs)" --label-regex "^($(IFS='|'; echo "${threaded[*]}"))$"

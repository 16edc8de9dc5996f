// Checkpoint manifests: any bytes give a manifest whose slices lie in their files and hold every
// tensor once, or an error; what was read prints and reads back as itself.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "train/checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster::checkpoint;
  const auto manifest = ParseManifest({reinterpret_cast<const char*>(data), size});
  if (!manifest) return 0;
  MUSTER_CHECK(Validate(manifest->index).has_value());
  MUSTER_CHECK(RequireComplete(*manifest).has_value());
  for (const StoredFile& file : manifest->files) {
    for (const StoredSlice& slice : file.slices) {
      const auto group = std::ranges::find(manifest->index.groups, slice.group, &Group::name);
      MUSTER_CHECK(group != manifest->index.groups.end());
      MUSTER_CHECK(slice.data_offset + slice.length * SizeOf(group->dtype) <= file.data_bytes);
    }
  }
  const auto text = WriteManifest(*manifest);
  MUSTER_CHECK(text.has_value());
  const auto again = ParseManifest(*text);
  MUSTER_CHECK(again.has_value() && again->index == manifest->index &&
               again->files == manifest->files && again->step == manifest->step);
  return 0;
}

// HyperPod's manifests: any bytes give a job or an error, and a job that was imported prints as a
// job file that reads back as itself.
#include <cstdint>
#include <string_view>

#include "spec/import/hyperpod.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster::spec;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* file : {"fuzz.yaml", "fuzz.json"}) {
    const auto imported = ImportHyperPod(text, file);
    if (!imported) continue;
    const auto again = ParseJob(PrintImported(*imported, file, "job.yaml"), "job.yaml");
    MUSTER_CHECK(again.has_value() && again->job == imported->job);
  }
  return 0;
}

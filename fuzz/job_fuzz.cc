// Job files: any bytes give a job or an error, and a job that was read prints and reads back as
// itself.
#include <cstdint>
#include <string_view>

#include "spec/job.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster::spec;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* file : {"fuzz.yaml", "fuzz.json"}) {
    const auto parsed = ParseJob(text, file);
    if (!parsed) continue;
    const auto yaml = ParseJob(PrintJobYaml(*parsed), "again.yaml");
    const auto json = ParseJob(PrintJobJson(parsed->job), "again.json");
    MUSTER_CHECK(yaml.has_value() && yaml->job == parsed->job);
    MUSTER_CHECK(json.has_value() && json->job == parsed->job);
  }
  return 0;
}

// The kernel's log: any bytes give a record or none, and a record a trouble or none, whose words
// can be shown.
#include <cstdint>
#include <string_view>

#include "agent/health/kernel_log_check.h"
#include "base/result.h"
#include "base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster;
  using namespace muster::agent::health;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto record = ParseKmsg(text);
  if (record) {
    MUSTER_CHECK(record->level <= 7 && record->text.size() <= kMostKmsgRecord);
  } else {
    record = KmsgRecord{};
    record->text = text;
  }
  const auto trouble = JudgeKernelLine(*record);
  if (trouble) {
    MUSTER_CHECK(!trouble->kind.empty() && !trouble->meaning.empty());
    MUSTER_CHECK(PlainLine(Describe(*trouble)) == Describe(*trouble));
  }
  return 0;
}

#pragma once
// Reports on their way to the coordinator: numbered from 1, a few at a time. JSON
// (docs/formats/node-protocol.md). Values; pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster::agent {

struct ReportBatch {
  std::uint64_t first = 1;             ///< number of the first report
  std::uint64_t seen = 0;              ///< newest order that the agent has
  Instant sent;                        ///< on the agent's clock
  std::vector<std::string> reports{};  ///< each as wire::Encode gives it
};

std::string FormatBatch(const ReportBatch& batch);
Result<ReportBatch> ParseBatch(std::string_view text);

}  // namespace muster::agent

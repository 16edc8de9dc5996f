// Run folders: any bytes as any of their files give a report that prints, and nothing of them
// reaches the page as markup.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "profile/report/page/report_page.h"
#include "profile/report/report_json.h"
#include "profile/report/summary.h"

namespace {

using namespace muster::profile;

/// Each line is a record of the kind that its first letter names: e, s, v; r, x and j are whole
/// files.
RunRecords Parse(std::string_view text) {
  RunRecords run;
  run.facts = {.name = "<script>fuzz", .created_ns = 1000, .ranks = 2};
  run.steps.resize(2);
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const std::string_view body = line.substr(1);
    if (line[0] == 'e') {
      if (auto event = ReadEvent(body)) run.events.push_back(*event);
    } else if (line[0] == 's' || line[0] == 't') {
      if (auto step = ReadStep(body)) run.steps[line[0] == 's' ? 0 : 1].push_back(*step);
    } else if (line[0] == 'v') {
      if (auto eval = ReadEval(body)) run.evals.push_back(*eval);
    } else if (line[0] == 'x') {
      if (auto note = ReadFault(body)) run.fault_notes.push_back(*note);
    } else if (line[0] == 'r') {
      if (auto result = ReadRunResult(body)) run.result = *std::move(result);
    } else if (line[0] == 'f') {
      if (auto facts = ReadRunFacts(body); facts && facts->ranks <= 64) {
        run.facts = *facts;
        run.steps.resize(facts->ranks);
        if (run.steps.size() < 2) run.steps.resize(2);
      }
    } else {
      run.job_yaml = body;
      run.tails.push_back({1, 0, "stderr", std::string(body)});
    }
  }
  return run;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const RunReport report = BuildReport(Parse({reinterpret_cast<const char*>(data), size}));
  const std::string page = ReportPage(report);
  MUSTER_CHECK(page.find("<script") == std::string::npos);
  MUSTER_CHECK(page.find('\x1b') == std::string::npos);
  MUSTER_CHECK(page.size() < 1'000'000 + 40 * size);
  MUSTER_CHECK(!ReportJson(report).empty());
  MUSTER_CHECK(SummaryText(report).find('\x1b') == std::string::npos);
  return 0;
}

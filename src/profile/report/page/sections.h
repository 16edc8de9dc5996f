#pragma once
// The parts of the page, each a pure function from the report to a piece of HTML, escaped and
// bounded; empty when the run has nothing to say there. report_page.cc puts them together.

#include <string>

#include "profile/report/run_report.h"

namespace muster::profile {

std::string HeadlineHtml(const RunReport& report);
std::string LossChartHtml(const RunReport& report);
std::string StepTimeChartHtml(const RunReport& report);
std::string LanesHtml(const RunReport& report);
std::string TimeHtml(const RunReport& report);
/// The stages of one fault as a bar with its numbers.
std::string LostBarHtml(const LostSeconds& lost, std::string_view label);
/// As FormatSeconds, but "under 1 ms" of what lasted: more digits say nothing to a reader.
std::string ShortSeconds(double seconds);
/// Whether LanesHtml shows this fault up close, with its LostBarHtml.
bool HasCloseUp(const RunReport& report, const FaultReport& fault);
std::string FaultsHtml(const RunReport& report);
/// Of the section of faults: below its table.
std::string FaultNotesHtml(const RunReport& report);
std::string LogTailsHtml(const RunReport& report);
std::string EvaluationHtml(const RunReport& report);
std::string FactsHtml(const RunReport& report);
std::string NotesHtml(const RunReport& report);

/// "<section …><h2>…</h2>body</section>", or nothing when the body is empty.
std::string Section(std::string_view title, const std::string& body);

/// The style sheet.
std::string_view PageStyle();

}  // namespace muster::profile

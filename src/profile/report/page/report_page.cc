#include "profile/report/page/report_page.h"

#include <fmt/format.h>

#include "profile/report/page/sections.h"
#include "profile/report/text.h"

namespace muster::profile {

std::string ReportPage(const RunReport& report) {
  // Inline styles place labels; with nothing loadable they can do no harm.
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; "
      "base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"generator\" content=\"muster report\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>{}</title>\n<style>{}</style></head>\n<body><main>\n",
      PlainHtml(report.facts.name + ": " + Verdict(report), 1000), PageStyle());
  page += HeadlineHtml(report);
  page += LossChartHtml(report);
  page += LanesHtml(report);
  page += TimeHtml(report);
  page += FaultsHtml(report);
  page += StepTimeChartHtml(report);
  page += EvaluationHtml(report);
  page += FactsHtml(report);
  page += NotesHtml(report);
  page += "<footer>Made by muster report from the run folder alone. Times are UTC.</footer>\n";
  return page + "</main></body></html>\n";
}

}  // namespace muster::profile

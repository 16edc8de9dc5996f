// What muster run noted about faults, and the ends of the logs of those who died. A program that
// dies of the same again and again is told of once, with the generations.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "profile/report/page/sections.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

constexpr std::size_t kMostDescribed = 20;
constexpr std::size_t kMostSteps = 4;
constexpr std::size_t kMostTailBytes = 160'000;  // of all logs together, as HTML

std::string Generations(const std::vector<std::uint64_t>& generations) {
  return (generations.size() == 1 ? "generation " : "generations ") + Ranges(generations);
}

/// Faults of one rank of which the same is to be told.
struct Alike {
  const FaultReport* last = nullptr;
  std::vector<std::uint64_t> generations;
  std::vector<std::uint64_t> steps;  ///< of each, where it is known
  bool Has(const FaultReport& fault) const {
    return last->rank == fault.rank && last->others == fault.others && last->what == fault.what &&
           last->exception == fault.exception;
  }
};

std::vector<Alike> Join(const std::vector<FaultReport>& faults) {
  std::vector<Alike> joined;
  for (const FaultReport& fault : faults) {
    if (fault.what.empty() && fault.exception.empty()) continue;
    auto found = std::ranges::find_if(joined, [&](const Alike& a) { return a.Has(fault); });
    if (found == joined.end()) {
      if (joined.size() == kMostDescribed) continue;
      found = joined.insert(joined.end(), Alike{});
    }
    found->last = &fault;
    found->generations.push_back(fault.generation);
    if (fault.step) found->steps.push_back(*fault.step);
  }
  return joined;
}

/// ", at step 7", ", at step 7 (2 times) and before its first step": where the same struck.
std::string StepsInWords(const std::vector<std::uint64_t>& steps) {
  std::vector<std::pair<std::uint64_t, std::size_t>> counts;
  for (const std::uint64_t step : steps) {
    const auto known =
        std::ranges::find(counts, step, [](const auto& count) { return count.first; });
    if (known == counts.end()) {
      counts.emplace_back(step, 1);
    } else {
      ++known->second;
    }
  }
  if (counts.size() > kMostSteps) return fmt::format(", at {} different steps", counts.size());
  std::string out;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto& [step, count] = counts[i];
    out += i == 0 ? ", " : i + 1 == counts.size() ? " and " : ", ";
    out += step == 0 ? "before its first step" : "at step " + FormatCount(step);
    if (count > 1 && counts.size() > 1) out += fmt::format(" ({} times)", count);
  }
  return out;
}

/// In a line or two. What was decided counts up with each; the last of it is how that ended.
std::string NoteHtml(const Alike& alike) {
  const std::size_t times = alike.generations.size();
  const FaultReport& fault = *alike.last;
  std::string out = fmt::format(
      "<p>Rank {}, {}{}{}: <b>{}</b>{}", fault.rank,
      times > 1 ? fmt::format("{} times, ", times) : "", Generations(alike.generations),
      times > 1 ? StepsInWords(alike.steps) : "", PlainHtml(fault.what, 200), AndOthers(fault));
  if (!fault.exception.empty()) {
    out += fmt::format(" <code>{}</code>", PlainHtml(fault.exception, 600));
  }
  if (!fault.decision.empty()) {
    out += fmt::format(" <small>{}{}</small>", times > 1 ? "at last: " : "",
                       PlainHtml(fault.decision, 300));
  }
  return out + "</p>";
}

std::string LogTailHtml(const LogTail& tail, const std::vector<std::uint64_t>& generations) {
  return fmt::format(
      "<details{}><summary>rank {}, {}, the end of {}</summary><pre>{}</pre></details>",
      tail.stream == "stderr" ? " open" : "", tail.rank, Generations(generations),
      EscapeHtml(tail.stream), PlainHtml(tail.text, kMostTailBytes));
}

}  // namespace

std::string FaultNotesHtml(const RunReport& report) {
  std::string out;
  for (const Alike& alike : Join(report.faults)) out += NoteHtml(alike);
  return out;
}

std::string LogTailsHtml(const RunReport& report) {
  std::string out;
  std::vector<const LogTail*> told;
  for (const LogTail& tail : report.tails) {
    const auto same = [&tail](const LogTail& other) {
      return other.rank == tail.rank && other.stream == tail.stream && other.text == tail.text;
    };
    if (std::ranges::any_of(told, [&](const LogTail* other) { return same(*other); })) continue;
    told.push_back(&tail);
    std::vector<std::uint64_t> generations;
    for (const LogTail& other : report.tails) {
      if (same(other)) generations.push_back(other.generation);
    }
    const std::string html = LogTailHtml(tail, generations);
    if (out.size() + html.size() > kMostTailBytes) break;
    out += html;
  }
  return out;
}

}  // namespace muster::profile

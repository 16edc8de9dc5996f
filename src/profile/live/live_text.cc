#include "profile/live/live_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/duration.h"
#include "base/text.h"
#include "base/utf8.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

using State = RankLive::State;

constexpr std::size_t kHappeningsAlone = 10;  ///< where rows do not count
constexpr std::size_t kLeastHappenings = 3;
constexpr std::size_t kHeader = 3;  // run, ranks, an empty line
constexpr std::size_t kGap = 3;     // between ranks that stand beside each other

/// At most so many characters.
std::string Fit(std::string text, std::size_t columns) {
  if (columns == 0) return text;
  std::size_t at = 0;
  for (std::size_t shown = 0; at < text.size(); ++shown) {
    if (shown == columns) {
      text.resize(at);
      return text;
    }
    at += std::max<std::size_t>(CharacterLength(std::string_view(text).substr(at)), 1);
  }
  return text;
}

std::string Since(std::int64_t from_ns, std::int64_t to_ns) {
  return FormatDuration(std::chrono::nanoseconds(std::max<std::int64_t>(0, to_ns - from_ns)));
}

std::string RunLine(const LiveRun& run, const TopLook& look) {
  const RunFacts& facts = run.facts();
  std::string state;
  switch (run.state()) {
    case LiveRun::State::kRunning:
      state = "running";
      if (look.now_ns) state += " for " + Since(facts.created_ns, *look.now_ns);
      break;
    case LiveRun::State::kSucceeded:
      state = "SUCCEEDED after " + Since(facts.created_ns, run.ended_ns());
      break;
    case LiveRun::State::kFailed:
      state = "FAILED after " + Since(facts.created_ns, run.ended_ns()) + ": " + run.reason();
      break;
    case LiveRun::State::kLost:
      state = "broke off: muster run ended without a word";
      break;
  }
  return PlainLine(
      fmt::format("{} ({}) {}", CutText(facts.name, 60), CutText(facts.id, 30), state));
}

std::string RanksLine(const LiveRun& run) {
  std::map<State, std::uint64_t> counts;
  for (const RankLive& rank : run.ranks()) ++counts[rank.state];
  std::string text = fmt::format("generation {}", run.generation());
  if (const auto step = run.Farthest()) text += ", step " + FormatCount(*step);
  if (run.checkpoint()) text += ", checkpoint at " + FormatCount(*run.checkpoint());
  text += fmt::format(", {}:", Counted(run.ranks().size(), "rank"));
  bool first = true;
  for (const auto& [state, count] : counts) {
    text += fmt::format("{} {} {}", first ? "" : ",", count, NameOf(state));
    first = false;
  }
  return text;
}

std::optional<std::uint64_t> Lag(const RankLive& rank, const std::optional<std::uint64_t>& first) {
  if (!rank.step || !first) return std::nullopt;
  return *first - *rank.step;
}

std::string Time(const RankLive& rank) {
  const auto seconds = rank.StepSeconds();
  return seconds ? FormatSeconds(*seconds) : "-";
}

template <typename Number>
std::string Or(const std::optional<Number>& number) {
  return number ? FormatCount(*number) : "-";
}

bool IsOdd(const RankLive& rank, const std::optional<std::uint64_t>& farthest) {
  if (rank.state != State::kRunning && rank.state != State::kFinished) return true;
  return Lag(rank, farthest).value_or(0) > 1;
}

/// How the ranks stand: one a line in full, or several beside each other.
class RankTable {
 public:
  RankTable(const LiveRun& run, const TopLook& look)
      : run_(run), look_(look), farthest_(run.Farthest()) {}

  std::vector<std::string> Full() const {
    std::vector<std::string> lines{fmt::format("{:>6} {:<8} {:>5} {:>11} {:>10} {:>6} {:>9} {:>9}",
                                               "rank", "state", "gen", "step", "step time", "lag",
                                               "loss", "ago")};
    for (std::uint32_t i = 0; i < run_.ranks().size(); ++i) lines.push_back(FullLine(i));
    return lines;
  }

  /// At most `rows` lines.
  std::vector<std::string> Beside(std::size_t rows) const {
    const std::string head = Cell("rank", "state", "step", "time", "lag");
    const std::size_t width = head.size() + kGap;
    const std::size_t across =
        look_.columns == 0 ? 1 : std::max<std::size_t>(1, (look_.columns + kGap) / width);
    const std::size_t count = run_.ranks().size();
    std::size_t deep = std::max<std::size_t>(rows, 3) - 1;
    const bool all = across * deep >= count;
    // The last line then says how many are not shown.
    if (!all) --deep;
    const std::vector<std::uint32_t> order = Order(all);
    const std::size_t shown = std::min(count, across * deep);
    deep = (shown + across - 1) / across;
    std::vector<std::string> lines(deep + 1);
    for (std::size_t i = 0; i < shown; ++i) {
      std::string& line = lines[1 + i % deep];
      line += (line.empty() ? "" : std::string(kGap, ' ')) + CellOf(order[i]);
      if (i % deep == 0) lines[0] += (i == 0 ? "" : std::string(kGap, ' ')) + head;
    }
    if (shown < count) lines.push_back(fmt::format("and {} more", Counted(count - shown, "rank")));
    return lines;
  }

 private:
  static std::string Cell(std::string_view rank, std::string_view state, std::string_view step,
                          std::string_view time, std::string_view lag) {
    return fmt::format("{:>5} {:<8} {:>9} {:>9} {:>5}", rank, state, step, time, lag);
  }

  std::string CellOf(std::uint32_t index) const {
    const RankLive& rank = run_.ranks()[index];
    return Cell(fmt::to_string(index), NameOf(rank.state), Or(rank.step), Time(rank),
                Or(Lag(rank, farthest_)));
  }

  std::string FullLine(std::uint32_t index) const {
    const RankLive& rank = run_.ranks()[index];
    const bool ago = look_.now_ns && rank.end_ns > 0 && run_.state() == LiveRun::State::kRunning;
    std::string line = fmt::format(
        "{:>6} {:<8} {:>5} {:>11} {:>10} {:>6} {:>9} {:>9}", index, NameOf(rank.state),
        rank.generation == 0 ? "-" : fmt::to_string(rank.generation), Or(rank.step), Time(rank),
        Or(Lag(rank, farthest_)), std::isfinite(rank.loss) ? FormatNumber(rank.loss) : "-",
        ago ? Since(rank.end_ns, *look_.now_ns) : "-");
    if (!rank.note.empty()) line += "  " + PlainLine(CutText(rank.note, 40));
    return line;
  }

  /// Of all ranks; where they are not all shown, the odd ones first.
  std::vector<std::uint32_t> Order(bool all) const {
    std::vector<std::uint32_t> order;
    for (const bool odd : {true, false}) {
      for (std::uint32_t i = 0; i < run_.ranks().size(); ++i) {
        if (all ? odd : IsOdd(run_.ranks()[i], farthest_) == odd) order.push_back(i);
      }
    }
    return order;
  }

  const LiveRun& run_;
  const TopLook& look_;
  std::optional<std::uint64_t> farthest_;
};

}  // namespace

std::vector<std::string> TopLines(const LiveRun& run, const std::deque<Happening>& happened,
                                  const TopLook& look) {
  std::vector<std::string> lines{RunLine(run, look), RanksLine(run), ""};
  const RankTable table(run, look);
  std::vector<std::string> ranks;
  std::size_t most = kHappeningsAlone;
  if (look.rows == 0) {
    ranks = table.Full();
  } else {
    const std::size_t below = std::min(happened.size(), kLeastHappenings) + 1;
    const std::size_t room = look.rows > kHeader + below ? look.rows - kHeader - below : 0;
    ranks = run.ranks().size() + 1 <= room ? table.Full() : table.Beside(room);
    const std::size_t used = kHeader + ranks.size() + 1;
    most = look.rows > used ? look.rows - used : 0;
  }
  lines.insert(lines.end(), ranks.begin(), ranks.end());
  if (!happened.empty() && most > 0) {
    lines.emplace_back();
    const std::size_t first = happened.size() > most ? happened.size() - most : 0;
    for (std::size_t i = first; i < happened.size(); ++i) {
      lines.push_back(HappeningLine(run, happened[i]));
    }
  }
  if (look.rows > 0 && lines.size() > look.rows) lines.resize(look.rows);
  for (std::string& line : lines) line = Fit(std::move(line), look.columns);
  return lines;
}

std::string RankLine(const LiveRun& run, std::uint32_t index) {
  const RankLive& rank = run.ranks()[index];
  std::string text = fmt::format("rank {}", index);
  if (rank.state != State::kRunning) text += fmt::format(" {}", NameOf(rank.state));
  if (!rank.note.empty()) text += fmt::format(" ({})", CutText(rank.note, 40));
  if (rank.step) text += fmt::format(" step {}", *rank.step);
  if (rank.StepSeconds()) text += fmt::format(", {} a step", FormatSeconds(*rank.StepSeconds()));
  if (std::isfinite(rank.loss)) text += fmt::format(", loss {}", FormatNumber(rank.loss));
  if (rank.generation > 0) text += fmt::format(", generation {}", rank.generation);
  return PlainLine(text);
}

std::string HappeningLine(const LiveRun& run, const Happening& happening) {
  return PlainLine(fmt::format("{}: {}", Since(run.facts().created_ns, happening.t_ns),
                               CutText(happening.text, 300)));
}

}  // namespace muster::profile

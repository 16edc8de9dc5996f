#include "agent/rules/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <tuple>

#include "agent/logs/line_framer.h"

namespace muster::agent::rules {
namespace {

struct OldLine {
  Instant time{};
  std::size_t log = 0;
  std::uint64_t number = 0;
  std::string text;
};

template <typename Number>
std::optional<Number> NumberBehind(std::string_view path, std::string_view mark) {
  const auto at = path.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const begin = path.data() + at + mark.size();
  Number number{};
  const auto [end, error] = std::from_chars(begin, path.data() + path.size(), number);
  return error == std::errc() && end != begin ? std::optional(number) : std::nullopt;
}

class Player {
 public:
  Player(RuleEngine engine, const std::vector<OldLog>& logs, std::size_t rules)
      : engine_(std::move(engine)), logs_(logs) {
    result_.matches.resize(rules);
  }

  Status PlayAll(std::uint32_t ranks) {
    std::set<Generation> generations;
    for (const OldLog& log : logs_) generations.insert(log.id.generation);
    for (const Generation generation : generations) MUSTER_TRY(Play(generation, ranks));
    return Ok();
  }
  Replayed Take() { return std::move(result_); }

 private:
  Status Play(Generation generation, std::uint32_t ranks) {
    std::vector<OldLine> lines;
    std::vector<bool> has_log(ranks);
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      if (logs_[i].id.generation != generation) continue;
      has_log[logs_[i].id.rank.value()] = true;
      MUSTER_TRY(ReadLines(i, lines));
    }
    std::ranges::sort(lines, [](const OldLine& a, const OldLine& b) {
      return std::tie(a.time, a.log, a.number) < std::tie(b.time, b.log, b.number);
    });
    const Instant begin = lines.empty() ? Instant{} : lines.front().time;
    engine_.Begin(generation, begin);
    for (std::uint32_t i = 0; i < ranks; ++i) {
      if (!has_log[i]) engine_.Finish(Rank(i), begin);
    }
    engine_.Go(begin);
    for (const OldLine& line : lines) PlayLine(line);
    if (!lines.empty()) engine_.Tick(lines.back().time);
    Collect(nullptr);
    for (std::size_t i = 0; i < result_.matches.size(); ++i) {
      result_.matches[i] += engine_.Matches(i);
    }
    return Ok();
  }

  void PlayLine(const OldLine& line) {
    const LogId& id = logs_[line.log].id;
    const auto stream =
        id.stream == Stream::kOut ? spec::LogRule::Stream::kOut : spec::LogRule::Stream::kErr;
    engine_.TakeLine(id.rank, stream, line.text, line.time);
    Collect(&line);
  }

  Status ReadLines(std::size_t log, std::vector<OldLine>& lines) {
    LineClock clock;
    LineFramer framer;
    std::vector<OldLine> before;  // lines in front of the first stamp have its time
    std::uint64_t number = 0;
    const auto take = [&](std::string_view text, bool continued) {
      if (continued) return;
      const auto time = clock.Next(text);
      OldLine line{Instant(time.value_or(nanoseconds(0))), log, ++number, std::string(text)};
      if (!time) return before.push_back(std::move(line));
      for (OldLine& earlier : before) {
        earlier.time = line.time;
        lines.push_back(std::move(earlier));
      }
      before.clear();
      Extend(*time);
      lines.push_back(std::move(line));
    };
    framer.Feed(logs_[log].text, take);
    for (const Line& line : framer.Finish()) take(line.text, line.continued);
    std::ranges::move(before, std::back_inserter(lines));
    result_.lines += number;
    if (!clock.kind()) return Ok();
    if (result_.kind && result_.kind != clock.kind()) {
      return Error(
          Code::kInvalid,
          fmt::format("{} has another kind of time stamp than the logs before it", logs_[log].name),
          "test them one by one");
    }
    result_.kind = clock.kind();
    return Ok();
  }

  void Extend(nanoseconds time) {
    result_.first = result_.first ? std::min(*result_.first, time) : time;
    result_.last = result_.last ? std::max(*result_.last, time) : time;
  }

  void Collect(const OldLine* line) {
    for (Firing& firing : engine_.TakeFirings()) {
      OldFiring fired{.firing = std::move(firing)};
      fired.silence = line == nullptr || fired.firing.time < line->time;
      if (line != nullptr) {
        fired.log = logs_[line->log].name;
        fired.line = line->number;
      }
      result_.firings.push_back(std::move(fired));
    }
  }

  RuleEngine engine_;
  const std::vector<OldLog>& logs_;
  Replayed result_;
};

}  // namespace

LogId IdOfPath(std::string_view path) {
  LogId id{Rank(0), Generation(1), Stream::kOut};
  const auto cut = path.rfind('/');
  const std::string_view file = cut == std::string_view::npos ? path : path.substr(cut + 1);
  const auto generation = NumberBehind<std::uint64_t>(file, "gen-");
  const auto rank = NumberBehind<std::uint32_t>(path, "rank-");
  if (generation) id.generation = Generation(*generation);
  // Nobody has more; the number decides how much is kept.
  if (rank && *rank < 100'000) id.rank = Rank(*rank);
  if (file.ends_with(".stderr.log")) id.stream = Stream::kErr;
  return id;
}

Result<Replayed> Replay(const std::vector<spec::LogRule>& rules, const std::vector<OldLog>& logs) {
  std::uint32_t ranks = 1;
  for (const OldLog& log : logs) ranks = std::max(ranks, log.id.rank.value() + 1);
  Player player(MUSTER_TRY(RuleEngine::Create(rules, ranks)), logs, rules.size());
  MUSTER_TRY(player.PlayAll(ranks));
  return player.Take();
}

}  // namespace muster::agent::rules

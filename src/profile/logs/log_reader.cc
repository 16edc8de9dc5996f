#include "profile/logs/log_reader.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace muster::profile {
namespace {

constexpr std::int64_t kLeastChunk = 4 << 10;
constexpr std::int64_t kMostChunk = 64 << 10;
constexpr std::int64_t kAllChunks = 32 << 20;
/// How seldom a log is looked at whose process is gone: a child of it may still write.
constexpr std::uint64_t kSupersededEvery = 10;
constexpr std::uint64_t kAskEvery = 256;

/// The log with the earliest next line, the first of equals by generation, rank and stream.
template <typename Log>
struct Candidate {
  std::int64_t t_ns = 0;
  const LogName* name = nullptr;
  Log* log = nullptr;
  bool operator<(const Candidate& other) const {  // a priority_queue has its greatest on top
    return t_ns != other.t_ns ? t_ns > other.t_ns : *name > *other.name;
  }
};

}  // namespace

Result<LogReader> LogReader::Open(const RunFiles& files, const LogQuery& query) {
  LogReader reader(files, query);
  MUSTER_TRY(reader.Add(true));
  if (query.tail) reader.SeekTail();
  return reader;
}

Status LogReader::Discover() { return Add(false); }

Status LogReader::Add(bool first) {
  all_ = MUSTER_TRY(ListLogs(*files_));
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(all_.size(), 1));
  const Bytes chunk{std::clamp(kAllChunks / count, kLeastChunk, kMostChunk)};
  for (const LogName& name : all_) {
    if (!query_.choice.Takes(name) || logs_.contains(name)) continue;
    LogCursor cursor(*files_, name, chunk);
    const auto sight = files_->Look(name.log_path());
    if (!sight) notes_.push_back(sight.error().message());
    if (sight && first) {
      cursor.Limit(sight->size);
      SeekSince(cursor, *sight);
    }
    logs_.emplace(name, Log{.cursor = std::move(cursor)});
  }
  MarkSuperseded();
  return Ok();
}

void LogReader::MarkSuperseded() {
  std::map<std::pair<std::uint32_t, bool>, std::uint64_t> newest;
  for (const LogName& name : all_) newest[{name.rank, name.err}] = name.generation;
  for (auto& [name, log] : logs_) {
    log.superseded = newest[{name.rank, name.err}] > name.generation;
  }
}

void LogReader::SeekSince(LogCursor& cursor, const FileSight& sight) {
  if (sight.size > 0 && !cursor.HasTimes()) {
    ++without_times_;
    if (query_.since_ns && sight.written < query_.since_wall) cursor.SeekLine(sight.size);
    return;
  }
  if (query_.since_ns) cursor.SeekTime(*query_.since_ns);
}

bool LogReader::Matches(std::string_view line) const {
  return query_.pattern == nullptr || query_.pattern->IsIn(WithoutEnd(line));
}

std::uint64_t LogReader::CountMatches() const {
  std::uint64_t lines = 0;
  for (const auto& [name, log] : logs_) {
    LogCursor cursor = log.cursor;
    while (const auto piece = cursor.Front(query_.to_end)) {
      if (piece->begins && Matches(piece->text)) ++lines;
      cursor.Pop();
    }
  }
  return lines;
}

/// Goes near the tail: each rank and stream has at most that many lines of it.
void LogReader::SeekTail() {
  std::uint64_t lines = 0;
  if (query_.pattern != nullptr) {
    lines = CountMatches();
  } else {
    std::map<std::pair<std::uint32_t, bool>, std::uint64_t> left;
    for (auto log = logs_.rbegin(); log != logs_.rend(); ++log) {
      auto& most = left.try_emplace({log->first.rank, log->first.err}, *query_.tail).first->second;
      const std::uint64_t found = log->second.cursor.SeekLast(most, query_.to_end);
      most -= found;
      lines += found;
    }
  }
  skip_ = lines > *query_.tail ? lines - *query_.tail : 0;
}

bool LogReader::Give(Log& log, const LogPiece& piece,
                     const std::function<bool(const LogPiece&)>& take) {
  if (piece.begins) {
    log.shown = Matches(piece.text);
    if (log.shown && skip_ > 0) {
      --skip_;
      log.shown = false;
    }
  }
  return !log.shown || take(piece);
}

void LogReader::Read(bool to_end, const std::function<bool(const LogPiece&)>& take,
                     const std::function<bool()>& stopped) {
  std::uint64_t pieces = 0;
  std::priority_queue<Candidate<Log>> waiting;
  const bool all = to_end || rounds_++ % kSupersededEvery == 0;
  for (auto& [name, log] : logs_) {
    if (all || !log.superseded) waiting.push({log.cursor.NextTime(), &name, &log});
  }
  while (!waiting.empty()) {
    Candidate<Log> now = waiting.top();
    waiting.pop();
    // On with this log as long as no other one has an earlier line, or inside of a line.
    for (;;) {
      // What a process left unfinished that has a successor will not be finished.
      const auto piece = now.log->cursor.Front(to_end || now.log->superseded);
      if (!piece) break;
      if (stopped && ++pieces % kAskEvery == 0 && stopped()) return;
      const bool ends = piece->ends;
      if (!Give(*now.log, *piece, take)) return now.log->cursor.Pop();
      now.log->cursor.Pop();
      if (!ends) continue;
      now.t_ns = now.log->cursor.NextTime();
      if (waiting.empty() || !(now < waiting.top())) continue;
      waiting.push(now);
      break;
    }
  }
}

void LogReader::GoOn() {
  skip_ = 0;
  for (auto& [name, log] : logs_) log.cursor.LiftLimit();
}

std::vector<std::string> LogReader::TakeNotes() { return std::exchange(notes_, {}); }

}  // namespace muster::profile

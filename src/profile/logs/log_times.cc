#include "profile/logs/log_times.h"

#include <algorithm>

namespace muster::profile {
namespace {

constexpr std::size_t kRecordsAtOnce = 256;

}  // namespace

void LogTimes::LoadTo(std::uint64_t end) {
  while (ahead_.empty() || ahead_.back().offset < end) {
    constexpr Bytes kAtOnce{kRecordsAtOnce * kLogRecordBytes};
    const auto bytes = files_->ReadAt(path_, next_record_ * kLogRecordBytes, kAtOnce);
    const std::size_t records = bytes ? bytes->size() / kLogRecordBytes : 0;
    for (std::size_t i = 0; i < records; ++i) {
      const LogMark mark =
          DecodeLogMark(std::string_view(*bytes).substr(i * kLogRecordBytes, kLogRecordBytes));
      newest_ = {.t_ns = std::max(newest_.t_ns, mark.t_ns),
                 .offset = std::max(newest_.offset, mark.offset)};
      // One mark an offset, so that an index of nonsense takes no memory.
      if (!ahead_.empty() && ahead_.back().offset == newest_.offset) ahead_.pop_back();
      ahead_.push_back(newest_);
    }
    next_record_ += records;
    if (records < kRecordsAtOnce) return;
  }
}

std::optional<std::int64_t> LogTimes::At(std::uint64_t offset) {
  while (!ahead_.empty() && ahead_.front().offset <= offset) {
    now_ = ahead_.front();
    ahead_.pop_front();
  }
  return now_ ? std::optional(now_->t_ns) : std::nullopt;
}

std::uint64_t LogTimes::Records() const {
  const auto sight = files_->Look(path_);
  return sight ? sight->size / kLogRecordBytes : 0;
}

bool LogTimes::exists() const { return Records() > 0; }

std::optional<LogMark> LogTimes::Read(std::uint64_t record) const {
  const auto bytes = files_->ReadAt(path_, record * kLogRecordBytes, Bytes{kLogRecordBytes});
  if (!bytes || bytes->size() < kLogRecordBytes) return std::nullopt;
  return DecodeLogMark(*bytes);
}

/// The first record that is not `before` what is looked for.
template <typename Before>
std::uint64_t LogTimes::Bisect(Before before) const {
  std::uint64_t low = 0;
  std::uint64_t high = Records();
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const auto mark = Read(middle);
    if (mark && before(*mark)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void LogTimes::Restart(std::uint64_t record) {
  next_record_ = record;
  now_.reset();
  newest_ = {};
  ahead_.clear();
}

std::optional<LogMark> LogTimes::SeekTime(std::int64_t t_ns) {
  const std::uint64_t record = Bisect([&](const LogMark& mark) { return mark.t_ns < t_ns; });
  Restart(record);
  return Read(record);
}

void LogTimes::SeekOffset(std::uint64_t offset) {
  const std::uint64_t behind = Bisect([&](const LogMark& mark) { return mark.offset <= offset; });
  Restart(behind == 0 ? 0 : behind - 1);
}

}  // namespace muster::profile

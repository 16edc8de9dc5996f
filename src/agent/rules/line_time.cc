#include "agent/rules/line_time.h"

#include <algorithm>
#include <cstdint>

namespace muster::agent::rules {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// Takes a text apart from its front; what does not fit leaves it unusable.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool Take(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// Exactly so many digits.
  std::optional<std::int64_t> Digits(std::size_t count) {
    if (rest_.size() < count) return std::nullopt;
    std::int64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (rest_[i] < '0' || rest_[i] > '9') return std::nullopt;
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }
  /// ".25" or ",25" as time; nothing there is 0.
  nanoseconds Fraction() {
    nanoseconds value{};
    const Cursor before = *this;
    if (!Take(".,")) return value;
    nanoseconds unit = seconds(1);
    bool any = false;
    while (const auto digit = Digits(1)) {
      unit /= 10;
      value += unit * *digit;
      any = true;
    }
    if (!any) *this = before;
    return value;
  }
  bool AtDigit() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }

 private:
  std::string_view rest_;
};

std::optional<nanoseconds> TimeOfDay(Cursor& cursor) {
  const auto hour = cursor.Digits(2);
  if (!hour || *hour > 23 || !cursor.Take(":")) return std::nullopt;
  const auto minute = cursor.Digits(2);
  if (!minute || *minute > 59 || !cursor.Take(":")) return std::nullopt;
  const auto second = cursor.Digits(2);
  if (!second || *second > 60 || cursor.AtDigit()) return std::nullopt;
  return hours(*hour) + minutes(*minute) + seconds(*second) + cursor.Fraction();
}

std::optional<nanoseconds> Offset(Cursor& cursor) {
  const bool east = cursor.Take("+");
  if (!east && !cursor.Take("-")) return nanoseconds(0);
  const auto hour = cursor.Digits(2);
  cursor.Take(":");
  const auto minute = cursor.Digits(2);
  if (!hour || !minute || *hour > 23 || *minute > 59) return nanoseconds(0);
  const nanoseconds offset = hours(*hour) + minutes(*minute);
  return east ? offset : -offset;
}

std::optional<LineTime> DateAndTime(Cursor cursor) {
  using std::chrono::day;
  using std::chrono::month;
  using std::chrono::year;
  const auto y = cursor.Digits(4);
  if (!y || !cursor.Take("-/")) return std::nullopt;
  const auto m = cursor.Digits(2);
  if (!m || !cursor.Take("-/")) return std::nullopt;
  const auto d = cursor.Digits(2);
  if (!d || !cursor.Take("T ")) return std::nullopt;
  const std::chrono::year_month_day date(
      year(static_cast<int>(*y)), month(static_cast<unsigned>(*m)), day(static_cast<unsigned>(*d)));
  // Years that nanoseconds can hold.
  if (!date.ok() || *y < 1970 || *y > 2200) return std::nullopt;
  const auto time = TimeOfDay(cursor);
  if (!time) return std::nullopt;
  const nanoseconds days = std::chrono::sys_days(date).time_since_epoch();
  return LineTime{LineTimeKind::kInstant, days + *time - Offset(cursor).value_or(nanoseconds(0))};
}

/// Ten digits: from 2001 to 2286.
std::optional<LineTime> SinceEpoch(Cursor cursor) {
  const auto whole = cursor.Digits(10);
  if (!whole || *whole < 1'000'000'000 || cursor.AtDigit()) return std::nullopt;
  return LineTime{LineTimeKind::kInstant, seconds(*whole) + cursor.Fraction()};
}

}  // namespace

std::optional<LineTime> ReadLineTime(std::string_view line) {
  Cursor cursor(line);
  cursor.Take("[(");
  if (auto time = DateAndTime(cursor)) return time;
  if (auto time = SinceEpoch(cursor)) return time;
  if (auto time = TimeOfDay(cursor)) return LineTime{LineTimeKind::kTimeOfDay, *time};
  return std::nullopt;
}

std::optional<nanoseconds> LineClock::Next(std::string_view line) {
  const auto read = ReadLineTime(line);
  if (!read || (kind_ && *kind_ != read->kind)) return last_;
  kind_ = read->kind;
  nanoseconds time = read->time + days_;
  if (*kind_ == LineTimeKind::kTimeOfDay && last_) {
    if (*last_ - time > hours(12)) {
      days_ += hours(24);
      time += hours(24);
    } else if (time - *last_ > hours(12) && days_ > nanoseconds(0)) {
      time -= hours(24);  // a straggler from before midnight
    }
  }
  last_ = last_ ? std::max(*last_, time) : time;
  return last_;
}

}  // namespace muster::agent::rules

#pragma once
// events.jsonl: what happened, in order, with CLOCK_MONOTONIC times. Single owner thread.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "agent/logs/log_loss.h"
#include "agent/run/append_file.h"
#include "base/clock.h"

namespace muster::agent {

class EventLog {
 public:
  struct Field {
    std::string_view key;
    std::variant<std::nullptr_t, std::int64_t, std::string, std::vector<std::uint32_t>> value;

    template <typename T>
      requires std::is_integral_v<T>
    Field(std::string_view name, T number) : key(name), value(static_cast<std::int64_t>(number)) {}
    Field(std::string_view name, std::optional<std::uint64_t> number) : key(name), value(nullptr) {
      if (number) value = static_cast<std::int64_t>(*number);
    }
    Field(std::string_view name, std::string text) : key(name), value(std::move(text)) {}
    Field(std::string_view name, std::vector<std::uint32_t> list)
        : key(name), value(std::move(list)) {}
    Field(std::string_view name, const char* text) : key(name), value(std::string(text)) {}
  };

  EventLog(FileSystem& files, std::string path, const Clock& clock)
      : file_(files, std::move(path)), clock_(clock) {}

  /// Returns the time that it wrote.
  Instant Add(std::string_view event, std::initializer_list<Field> fields = {});
  /// As `log_dropped`, and in the totals.
  void AddLoss(const LogLoss& loss);
  const LossTotals& losses() const { return losses_; }
  /// Behind those of another process of ours.
  void GoOn() { file_.GoOn(); }
  bool Flush() { return file_.Flush(); }
  /// Bytes of events that are not in the file: dropped, or still waiting for room.
  std::uint64_t unwritten_bytes() const { return file_.lost_bytes() + file_.waiting_bytes(); }

 private:
  AppendFile file_;
  const Clock& clock_;
  LossTotals losses_;
};

}  // namespace muster::agent

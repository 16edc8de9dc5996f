#pragma once
// Structured log: a constant event name and fields, one line on stderr (or JSON lines). ERROR:
// someone must act; WARN: it healed itself; INFO: a state changed; DEBUG: for us. Thread-safe; a
// line is one write(2). Values may be hostile: what could forge a line, move a cursor or break JSON
// is escaped.
//
//   log::Info("worker exited", {{"rank", 3}, {"signal", "SIGKILL"}});

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace muster::log {

enum class Level { kDebug, kInfo, kWarn, kError };

class Field {
 public:
  Field(std::string_view key, std::string_view value);
  Field(std::string_view key, const char* value) : Field(key, std::string_view(value)) {}
  Field(std::string_view key, const std::string& value) : Field(key, std::string_view(value)) {}
  Field(std::string_view key, double value);
  Field(std::string_view key, bool value);
  template <typename T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Field(std::string_view key, T value)
      : Field(key,
              static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(
                  value),
              Integer{}) {}

  std::string_view key() const { return key_; }
  const std::string& value() const { return value_; }
  bool quoted() const { return quoted_; }

 private:
  struct Integer {};
  Field(std::string_view key, std::int64_t value, Integer);
  Field(std::string_view key, std::uint64_t value, Integer);

  std::string_view key_;
  std::string value_;
  bool quoted_ = false;
};

struct Options {
  Level level = Level::kInfo;
  bool json = false;
  int fd = 2;
};

/// Set once at start, before threads; the defaults log INFO as text to stderr.
void Configure(const Options& options);

void Write(Level level, std::string_view event, std::initializer_list<Field> fields);
inline void Debug(std::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kDebug, event, fields);
}
inline void Info(std::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kInfo, event, fields);
}
inline void Warn(std::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kWarn, event, fields);
}
inline void Error(std::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kError, event, fields);
}

}  // namespace muster::log

#include "base/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "base/clock.h"

namespace muster::log {
namespace {

struct Settings {
  std::atomic<Level> level{Level::kInfo};
  std::atomic<bool> json{false};
  std::atomic<int> fd{2};
};

Settings& TheSettings() {
  static Settings settings;
  return settings;
}

constexpr std::array<std::string_view, 4> kNames{"DEBUG", "INFO", "WARN", "ERROR"};

/// JSON string escapes; they also keep a hostile value from forging a line or moving a terminal's
/// cursor.
void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

bool NeedsQuotes(std::string_view text) {
  if (text.empty()) return true;
  for (const char c : text) {
    if (c == ' ' || c == '"' || c == '=' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ||
        c == 0x7f)
      return true;
  }
  return false;
}

}  // namespace

Field::Field(std::string_view key, std::string_view value)
    : key_(key), value_(value), quoted_(true) {}
Field::Field(std::string_view key, double value)
    : key_(key), value_(fmt::format("{:.6g}", value)) {}
Field::Field(std::string_view key, bool value) : key_(key), value_(value ? "true" : "false") {}
Field::Field(std::string_view key, Integer, std::int64_t value)
    : key_(key), value_(fmt::format("{}", value)) {}

void Configure(const Options& options) {
  Settings& settings = TheSettings();
  settings.level = options.level;
  settings.json = options.json;
  settings.fd = options.fd;
}

void Write(Level level, std::string_view event, std::initializer_list<Field> fields) {
  const Settings& settings = TheSettings();
  if (level < settings.level) return;
  const std::string time = FormatUtc(SystemClock().Wall());
  const std::string_view name = kNames[static_cast<std::size_t>(level)];
  std::string line;
  if (settings.json) {
    line = fmt::format(R"({{"time":"{}","level":"{}","event":)", time, name);
    AppendQuoted(line, event);
    for (const Field& field : fields) {
      line += ',';
      AppendQuoted(line, field.key());
      line += ':';
      if (field.quoted()) {
        AppendQuoted(line, field.value());
      } else {
        line += field.value();
      }
    }
    line += "}\n";
  } else {
    line = fmt::format("{} {:<5} {}", time, name, event);
    for (const Field& field : fields) {
      line += fmt::format(" {}=", field.key());
      if (NeedsQuotes(field.value())) {
        AppendQuoted(line, field.value());
      } else {
        line += field.value();
      }
    }
    line += '\n';
  }
  // A log line that cannot be written has nowhere to be reported.
  [[maybe_unused]] const auto written = ::write(settings.fd, line.data(), line.size());
}

}  // namespace muster::log

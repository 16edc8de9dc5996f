#include "base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "base/clock.h"
#include "base/utf8.h"
#include "base/write_all.h"

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
/// cursor. Bytes that are no UTF-8 become U+FFFD, so that the line stays JSON.
void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    const auto c = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += {'\\', text[0]};
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", c);
    } else if (length == 2 && c == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[1]));  // C1 controls
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

bool NeedsQuotes(std::string_view text) {
  return text.empty() || std::any_of(text.begin(), text.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte <= 0x20 || byte >= 0x7f || c == '"' || c == '=' || c == '\\';
         });
}

void AppendJson(std::string& line, std::string_view event, std::initializer_list<Field> fields) {
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
}

void AppendText(std::string& line, std::initializer_list<Field> fields) {
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

/// A line on a pipe may go out in pieces when it is longer than PIPE_BUF; a line that cannot be
/// written has nowhere to be reported.
void WriteLine(int fd, std::string_view line) {
  [[maybe_unused]] const Written written = WriteAll(fd, AsBytes(line));
}

}  // namespace

Field::Field(std::string_view key, std::string_view value)
    : key_(key), value_(value), quoted_(true) {}
Field::Field(std::string_view key, double value)
    // JSON has no NaN and no infinity.
    : key_(key), value_(fmt::format("{:.6g}", value)), quoted_(!std::isfinite(value)) {}
Field::Field(std::string_view key, bool value) : key_(key), value_(value ? "true" : "false") {}
Field::Field(std::string_view key, std::int64_t value, Integer)
    : key_(key), value_(fmt::format("{}", value)) {}
Field::Field(std::string_view key, std::uint64_t value, Integer)
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
    AppendJson(line, event, fields);
  } else {
    line = fmt::format("{} {:<5} {}", time, name, event);
    AppendText(line, fields);
  }
  WriteLine(settings.fd, line);
}

}  // namespace muster::log

#include "cli/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>

#include "base/write_all.h"

namespace muster::cli {
namespace {

// xterm's, which every terminal in use knows: DECSET 1049 (other screen), DECTCEM (cursor).
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";

}  // namespace

void Screen::Enter() {
  if (entered_) return;
  entered_ = true;
  typing_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
  if (typing_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  live_.Write(kEnter);
}

void Screen::Leave() {
  if (!entered_) return;
  entered_ = false;
  // Not by Live: a signal that came already would cut it short.
  [[maybe_unused]] const Written written = WriteAll(STDOUT_FILENO, AsBytes(kLeave));
  if (typing_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

Screen::Size Screen::size() const {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 ||
      window.ws_row == 0) {
    return {};
  }
  return {.columns = window.ws_col, .rows = window.ws_row};
}

bool Screen::Draw(const std::vector<std::string>& lines) {
  std::string frame(kHome);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) frame += "\r\n";
    frame += lines[i];
    frame += kClearLine;
  }
  frame += kClearBelow;
  return live_.Write(frame);
}

char Screen::TakeKey() {
  pollfd ready{STDIN_FILENO, POLLIN, 0};
  std::array<char, 64> keys{};
  if (!typing_ || ::poll(&ready, 1, 0) <= 0) return '\0';
  const ssize_t n = ::read(STDIN_FILENO, keys.data(), keys.size());
  return n > 0 ? keys[0] : '\0';
}

}  // namespace muster::cli

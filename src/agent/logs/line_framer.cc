#include "agent/logs/line_framer.h"

namespace muster::agent {

std::size_t LineFramer::EndOfLine(std::string_view bytes) {
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  return std::min(bytes.substr(0, end).find('\r'), end);
}

std::vector<Line> LineFramer::Add(std::string_view bytes) {
  std::vector<Line> lines;
  Feed(bytes, [&](std::string_view text, bool continued) {
    lines.push_back({std::string(text), continued});
  });
  return lines;
}

std::vector<Line> LineFramer::Finish() {
  std::vector<Line> lines;
  if (!held_.empty()) lines.push_back({std::exchange(held_, {}), continued_});
  continued_ = false;
  return lines;
}

void LineFramer::Break() {
  held_.clear();
  continued_ = false;
  after_cr_ = false;
}

}  // namespace muster::agent

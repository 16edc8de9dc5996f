#include "agent/logs/line_framer.h"

#include <algorithm>
#include <utility>

namespace muster::agent {

void LineFramer::Emit(std::vector<Line>& lines, bool cut) {
  lines.push_back({std::exchange(held_, {}), continued_});
  continued_ = cut;
}

std::vector<Line> LineFramer::Add(std::string_view bytes) {
  std::vector<Line> lines;
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    const std::size_t room = kMaxLine - held_.size();
    const std::size_t take = std::min(end, room);
    held_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
    if (take < end) {
      Emit(lines, true);
      continue;
    }
    if (bytes.empty()) break;
    after_cr_ = bytes.front() == '\r';
    bytes.remove_prefix(1);
    Emit(lines, false);
  }
  return lines;
}

std::vector<Line> LineFramer::Finish() {
  std::vector<Line> lines;
  if (!held_.empty()) Emit(lines, false);
  return lines;
}

void LineFramer::Break() {
  held_.clear();
  continued_ = false;
  after_cr_ = false;
}

}  // namespace muster::agent

#include "agent/run/append_file.h"

#include <fstream>

namespace muster::agent {

void AppendFile::Append(std::string_view lines) {
  if (backlog_.size() + lines.size() > static_cast<std::size_t>(max_backlog_.count)) {
    lost_ += lines.size();
    return;
  }
  backlog_ += lines;
  Flush();
}

void AppendFile::GoOn() {
  std::ifstream file(path_, std::ios::binary);
  if (!file.seekg(-1, std::ios::end)) return;  // there is none, or it is empty
  if (file.get() != '\n') Append("\n");
}

bool AppendFile::Flush() {
  if (!backlog_.empty()) backlog_.erase(0, file_.Append(backlog_));
  return backlog_.empty();
}

}  // namespace muster::agent

#include "agent/run/append_file.h"

namespace muster::agent {

void AppendFile::Append(std::string_view lines) {
  if (backlog_.size() + lines.size() > static_cast<std::size_t>(max_backlog_.count)) {
    lost_ += lines.size();
    return;
  }
  backlog_ += lines;
  Flush();
}

bool AppendFile::Flush() {
  if (backlog_.empty()) return true;
  if (!file_) {
    auto opened = files_.Create(path_, {.append = true, .mode = 0644});
    if (!opened) return false;
    file_ = std::move(*opened);
  }
  // A newline ends the half line of a failed write: readers skip what does not parse.
  if (torn_ && !file_->Write(AsBytes("\n"))) return false;
  torn_ = !file_->Write(AsBytes(backlog_)).has_value();
  if (torn_) return false;
  backlog_.clear();
  return true;
}

}  // namespace muster::agent

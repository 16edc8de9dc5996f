#include "agent/logs/log_file.h"

#include <fmt/format.h>

#include "base/durable.h"

namespace muster::agent {

bool LogFile::WriteAll(std::string_view bytes) {
  if (!file_) {
    const std::string folder = ParentOf(path_);
    if (!files_.Exists(folder) && !files_.MakeDirectory(folder, 0700)) return false;
    auto opened = files_.Create(path_, {.append = true, .mode = 0600});
    if (!opened) return false;
    file_ = std::move(*opened);
  }
  return bytes.empty() || file_->Write(AsBytes(bytes)).has_value();
}

std::uint64_t LogFile::Append(std::uint64_t missing, std::string_view bytes) {
  unmarked_ += missing;
  if (unmarked_ > 0) {
    if (!WriteAll(fmt::format("\n[muster: {} bytes are missing here]\n", unmarked_))) {
      unmarked_ += bytes.size();
      return missing + bytes.size();
    }
    unmarked_ = 0;
  }
  if (WriteAll(bytes)) return missing;
  // A write that failed may have left a part of itself; the marker behind it says so.
  unmarked_ += bytes.size();
  return missing + bytes.size();
}

}  // namespace muster::agent

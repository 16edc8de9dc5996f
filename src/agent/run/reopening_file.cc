#include "agent/run/reopening_file.h"

#include "base/durable.h"

namespace muster::agent {

bool ReopeningFile::Open() {
  if (file_) return true;
  const std::string folder = ParentOf(path_);
  if (makes_folder_ && !files_->Exists(folder) && !files_->MakeDirectory(folder, 0700)) {
    return false;
  }
  auto opened = files_->Create(path_, {.append = true, .mode = mode_});
  if (opened) file_ = std::move(*opened);
  return file_ != nullptr;
}

std::size_t ReopeningFile::Append(std::string_view bytes) {
  if (!Open() || bytes.empty()) return 0;
  const std::uint64_t before = file_->written();
  if (file_->Write(AsBytes(bytes))) return bytes.size();
  const auto kept = static_cast<std::size_t>(file_->written() - before);
  file_.reset();
  return kept;
}

}  // namespace muster::agent

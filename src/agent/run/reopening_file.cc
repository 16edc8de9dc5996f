#include "agent/run/reopening_file.h"

#include "base/durable.h"

namespace muster::agent {

bool ReopeningFile::Open() {
  if (file_) return true;
  const std::string folder = ParentOf(path_);
  if (makes_folder_ && !files_->Exists(folder)) {
    if (const Status made = files_->MakeDirectory(folder, 0700); !made) return Failed(made.error());
  }
  auto opened = files_->Create(path_, {.append = true, .mode = mode_});
  if (!opened) return Failed(opened.error());
  file_ = std::move(*opened);
  return true;
}

bool ReopeningFile::Failed(const Error& error) {
  no_room_ = error.code() == Code::kExhausted;
  return false;
}

std::size_t ReopeningFile::Append(std::string_view bytes) {
  if (!Open() || bytes.empty()) return 0;
  const std::uint64_t before = file_->written();
  const Status written = file_->Write(AsBytes(bytes));
  if (written) return bytes.size();
  Failed(written.error());
  const auto kept = static_cast<std::size_t>(file_->written() - before);
  file_.reset();
  return kept;
}

}  // namespace muster::agent

#include "base/durable.h"

namespace muster {
namespace {

Status WriteAndSync(FileSystem& files, const std::string& path, ByteSpan content, unsigned mode) {
  const auto file = MUSTER_TRY(files.Create(path, {.replace = true, .mode = mode}));
  MUSTER_TRY(file->Write(content));
  MUSTER_TRY(file->Sync());
  return file->Close();
}

}  // namespace

Status WriteDurably(FileSystem& files, const std::string& path, ByteSpan content, unsigned mode) {
  const std::string temporary = path + ".tmp";
  Status written = WriteAndSync(files, temporary, content, mode);
  if (written) written = files.Rename(temporary, path);
  if (!written) {
    // The first error is the one to report; a temporary file that stays is overwritten by the next
    // attempt.
    [[maybe_unused]] const Status removed = files.RemoveAll(temporary);
    return written;
  }
  return files.SyncDirectory(ParentOf(path));
}

Status CommitRename(FileSystem& files, const std::string& from, const std::string& to) {
  if (files.Exists(to)) return Error(Code::kAlreadyExists, to + " exists already");
  MUSTER_TRY(files.Rename(from, to));
  return files.SyncDirectory(ParentOf(to));
}

std::string ParentOf(const std::string& path) {
  const auto end = path.find_last_not_of('/');
  if (end == std::string::npos) return path.empty() ? "." : "/";
  const auto slash = path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  const auto last = path.find_last_not_of('/', slash);
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

std::string NameOf(const std::string& path) {
  const auto end = path.find_last_not_of('/');
  if (end == std::string::npos) return path.empty() ? "" : "/";
  const auto slash = path.rfind('/', end);
  return path.substr(slash == std::string::npos ? 0 : slash + 1,
                     end - (slash == std::string::npos ? 0 : slash + 1) + 1);
}

}  // namespace muster

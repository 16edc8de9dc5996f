#include "base/durable.h"

#include <utility>

#include "base/id.h"

namespace muster {
namespace {

Status WriteAndSync(FileSystem& files, const std::string& path, ByteSpan content, unsigned mode) {
  // What an earlier crash left has an owner and a mode of its own; a new file has ours.
  MUSTER_TRY(files.RemoveAll(path));
  return WriteNew(files, path, content, mode);
}

/// Who asked for `path` knows nothing of a temporary file, and it is gone.
Error Naming(const std::string& path, const std::string& temporary, const Error& error) {
  std::string message = error.message();
  if (const auto at = message.find(temporary); at != std::string::npos) {
    message.replace(at, temporary.size(), path);
  }
  return {error.code(), message, error.hint()};
}

/// Makes a rename durable in the folder it came from too, or a crash could bring the old name back.
Status SyncParents(FileSystem& files, const std::string& from, const std::string& to) {
  MUSTER_TRY(files.SyncDirectory(ParentOf(to)));
  if (ParentOf(from) == ParentOf(to)) return Ok();
  return files.SyncDirectory(ParentOf(from));
}

Replaced RemoveOld(FileSystem& files, const std::string& old) {
  const Status removed = files.RemoveAll(old);
  if (removed) return {};
  return {.left = old, .why = removed.error().message()};
}

/// The way round for file systems without an exchange.
Result<Replaced> ReplaceInTwoSteps(FileSystem& files, const std::string& from,
                                   const std::string& to) {
  const std::string aside = to + ".old";
  MUSTER_TRY(files.RemoveAll(aside));
  MUSTER_TRY(files.RenameNew(to, aside));
  if (Status placed = files.RenameNew(from, to); !placed) {
    // Back to how it was; the first error is the one to report.
    [[maybe_unused]] const Status restored = files.RenameNew(aside, to);
    return std::move(placed).error();
  }
  MUSTER_TRY(SyncParents(files, from, to));
  return RemoveOld(files, aside);
}

}  // namespace

Status WriteDurably(FileSystem& files, const std::string& path, ByteSpan content, unsigned mode) {
  return WriteDurably(files, path, path + ".tmp", content, mode);
}

Status WriteDurably(FileSystem& files, const std::string& path, const std::string& temporary,
                    ByteSpan content, unsigned mode) {
  Status written = WriteAndSync(files, temporary, content, mode);
  if (written) written = files.Rename(temporary, path);
  if (!written) {
    // The first error is the one to report; a temporary file that stays is replaced by the next
    // attempt.
    [[maybe_unused]] const Status removed = files.RemoveAll(temporary);
    return Naming(path, temporary, written.error());
  }
  return files.SyncDirectory(ParentOf(path));
}

Status WriteNew(FileSystem& files, const std::string& path, ByteSpan content, unsigned mode) {
  const auto file = MUSTER_TRY(files.Create(path, {.mode = mode}));
  MUSTER_TRY(file->Write(content));
  MUSTER_TRY(file->Sync());
  return file->Close();
}

std::string TemporaryBeside(const std::string& path) {
  return ParentOf(path) + "/." + NameOf(path) + "." + SystemIds().Next(8) + ".tmp";
}

Status CommitRename(FileSystem& files, const std::string& from, const std::string& to) {
  MUSTER_TRY(files.RenameNew(from, to));
  return SyncParents(files, from, to);
}

Result<Replaced> CommitReplace(FileSystem& files, const std::string& from, const std::string& to) {
  if (!files.Exists(to)) {
    MUSTER_TRY(CommitRename(files, from, to));
    return Replaced{};
  }
  const Status exchanged = files.Exchange(from, to);
  if (!exchanged && exchanged.error().code() == Code::kPrecondition) {
    return ReplaceInTwoSteps(files, from, to);
  }
  if (!exchanged) return exchanged.error();
  MUSTER_TRY(SyncParents(files, from, to));
  return RemoveOld(files, from);
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

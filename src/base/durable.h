#pragma once
// Replacing a file or a folder so that a crash at any instant leaves the old or the new one, whole:
// write beside it, fsync, rename, fsync the parent. Every state file of Muster is written through
// here.

#include <string>

#include "base/file_system.h"

namespace muster {

/// Writes `content` to `path` atomically and durably: `path.tmp` → fsync → rename → fsync of the
/// folder. On an error the old content stands and the temporary file is gone.
Status WriteDurably(FileSystem& files, const std::string& path, ByteSpan content,
                    unsigned mode = 0644);

/// Renames a finished file or folder to its final name and makes the name durable. AlreadyExists
/// when `to` is there.
Status CommitRename(FileSystem& files, const std::string& from, const std::string& to);

/// "a/b/c" → "a/b", "c" → ".", "/c" → "/".
std::string ParentOf(const std::string& path);
/// "a/b/c" → "c", "a/b/" → "b".
std::string NameOf(const std::string& path);

}  // namespace muster

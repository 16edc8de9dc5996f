#pragma once
// Replacing a file or a folder so that a crash at any instant leaves the old or the new one, whole:
// write beside it, fsync, rename, fsync the parent. Every state file of Muster is written through
// here.

#include <string>

#include "base/file_system.h"

namespace muster {

/// Writes `content` to `path` atomically and durably: `path.tmp` → fsync → rename → fsync of the
/// folder. On an error the old content stands and the temporary file is gone; only when that last
/// fsync fails, the new content is there and a power cut may still bring the old one back.
Status WriteDurably(FileSystem& files, const std::string& path, ByteSpan content,
                    unsigned mode = 0644);

/// The same through a temporary file of another name: in a user's folder `path.tmp` may be the
/// user's own.
Status WriteDurably(FileSystem& files, const std::string& path, const std::string& temporary,
                    ByteSpan content, unsigned mode);
/// Writes a file that must not be there yet, synced but not atomic: for a folder that is committed
/// as a whole.
Status WriteNew(FileSystem& files, const std::string& path, ByteSpan content, unsigned mode = 0644);
/// A hidden name beside `path`, ".NAME.RANDOM.tmp", that no other file has.
std::string TemporaryBeside(const std::string& path);

/// Renames a finished file or folder to its final name and makes the name durable. AlreadyExists
/// when `to` is there. Its content must have been synced.
Status CommitRename(FileSystem& files, const std::string& from, const std::string& to);

/// What stood there before and could not be removed; `left` is empty when nothing is left.
struct Replaced {
  std::string left;
  std::string why;
};

/// Puts the finished file or folder `from` in the place of `to`, which may exist or not, makes that
/// durable and removes what stood there. Where only the removing fails, `to` is the new one all the
/// same: that is success, and the answer names what is left. At every instant `to` is the old or
/// the new one, whole. Where the file system cannot exchange names, `to` is missing between two
/// renames; a crash just there leaves the new one as `from` and the old one as `to`.old.
Result<Replaced> CommitReplace(FileSystem& files, const std::string& from, const std::string& to);

/// "a/b/c" → "a/b", "c" → ".", "/c" → "/".
std::string ParentOf(const std::string& path);
/// "a/b/c" → "c", "a/b/" → "b".
std::string NameOf(const std::string& path);

}  // namespace muster

#include "base/memory_files.h"

#include <algorithm>
#include <cerrno>

#include "base/durable.h"

namespace muster {

/// What one inode says, to programs and to the disk.
struct MemoryFiles::Node {
  bool folder = false;
  std::string content;
  std::string durable_content;
  Entries entries;
  Entries durable_entries;
};

class MemoryFiles::File final : public WritableFile {
 public:
  File(Mutex& mutex, NodePtr node) : mutex_(mutex), node_(std::move(node)) {}
  Status Write(ByteSpan data) override {
    MutexLock lock(mutex_);
    node_->content += AsText(data);
    written_ += data.size();
    return Ok();
  }
  std::uint64_t written() const override {
    MutexLock lock(mutex_);
    return written_;
  }
  Status Sync() override {
    MutexLock lock(mutex_);
    node_->durable_content = node_->content;
    return Ok();
  }
  Status Close() override { return Ok(); }

 private:
  Mutex& mutex_;
  NodePtr node_;
  std::uint64_t written_ = 0;
};

MemoryFiles::MemoryFiles() : root_(std::make_shared<Node>()) { root_->folder = true; }
MemoryFiles::~MemoryFiles() = default;

MemoryFiles::NodePtr MemoryFiles::Find(const std::string& path) const {
  NodePtr node = root_;
  for (std::size_t begin = 0; node != nullptr && begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    const auto found = node->entries.find(name);
    node = found == node->entries.end() ? nullptr : found->second;
  }
  return node;
}

Result<MemoryFiles::NodePtr> MemoryFiles::FolderOf(const std::string& path) const {
  NodePtr folder = Find(ParentOf(path));
  if (folder == nullptr) return ErrnoError("open " + ParentOf(path), ENOENT);
  if (!folder->folder) return ErrnoError("open " + ParentOf(path), ENOTDIR);
  return folder;
}

Result<std::unique_ptr<WritableFile>> MemoryFiles::Create(const std::string& path,
                                                          const CreateOptions& options) {
  MutexLock lock(mutex_);
  const NodePtr folder = MUSTER_TRY(FolderOf(path));
  NodePtr& node = folder->entries[NameOf(path)];
  if (node != nullptr && node->folder) return ErrnoError("create " + path, EISDIR);
  if (node != nullptr && !options.append && !options.replace) {
    return ErrnoError("create " + path, EEXIST);
  }
  if (node == nullptr) node = std::make_shared<Node>();
  if (!options.append) node->content.clear();
  return std::unique_ptr<WritableFile>(std::make_unique<File>(mutex_, node));
}

Result<std::string> MemoryFiles::ReadAll(const std::string& path, Bytes limit) {
  MutexLock lock(mutex_);
  const NodePtr node = Find(path);
  if (node == nullptr) return ErrnoError("open " + path, ENOENT);
  if (node->folder) return Error(Code::kInvalid, path + " is not a regular file");
  if (static_cast<std::int64_t>(node->content.size()) > limit.count) {
    return Error(Code::kInvalid, path + " is larger than " + FormatBytes(limit));
  }
  return node->content;
}

Status MemoryFiles::MakeDirectory(const std::string& path, unsigned) {
  MutexLock lock(mutex_);
  const NodePtr folder = MUSTER_TRY(FolderOf(path));
  NodePtr& node = folder->entries[NameOf(path)];
  if (node != nullptr) return ErrnoError("create folder " + path, EEXIST);
  node = std::make_shared<Node>();
  node->folder = true;
  return Ok();
}

Status MemoryFiles::Move(const std::string& from, const std::string& to) {
  const NodePtr source = MUSTER_TRY(FolderOf(from));
  const NodePtr target = MUSTER_TRY(FolderOf(to));
  const auto found = source->entries.find(NameOf(from));
  if (found == source->entries.end()) return ErrnoError("rename " + from + " to " + to, ENOENT);
  const NodePtr node = found->second;
  NodePtr& place = target->entries[NameOf(to)];
  if (place == node) return Ok();
  if (place != nullptr && place->folder != node->folder) {
    return ErrnoError("rename " + from + " to " + to, node->folder ? ENOTDIR : EISDIR);
  }
  if (place != nullptr && !place->entries.empty()) {
    return ErrnoError("rename " + from + " to " + to, ENOTEMPTY);
  }
  place = node;
  source->entries.erase(NameOf(from));
  return Ok();
}

Status MemoryFiles::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(mutex_);
  return Move(from, to);
}

Status MemoryFiles::RenameNew(const std::string& from, const std::string& to) {
  MutexLock lock(mutex_);
  if (Find(to) != nullptr) return Error(Code::kAlreadyExists, to + " exists already");
  return Move(from, to);
}

Status MemoryFiles::Exchange(const std::string& a, const std::string& b) {
  MutexLock lock(mutex_);
  if (Find(a) == nullptr || Find(b) == nullptr) {
    return ErrnoError("exchange " + a + " with " + b, ENOENT);
  }
  const NodePtr first = MUSTER_TRY(FolderOf(a));
  const NodePtr second = MUSTER_TRY(FolderOf(b));
  std::swap(first->entries[NameOf(a)], second->entries[NameOf(b)]);
  return Ok();
}

Status MemoryFiles::SyncDirectory(const std::string& path) {
  MutexLock lock(mutex_);
  const NodePtr node = Find(path);
  if (node == nullptr) return ErrnoError("open " + path, ENOENT);
  if (!node->folder) return ErrnoError("open " + path, ENOTDIR);
  node->durable_entries = node->entries;
  return Ok();
}

Status MemoryFiles::RemoveAll(const std::string& path) {
  MutexLock lock(mutex_);
  const auto folder = FolderOf(path);
  if (folder) (*folder)->entries.erase(NameOf(path));
  return Ok();
}

Result<std::vector<std::string>> MemoryFiles::List(const std::string& path) {
  MutexLock lock(mutex_);
  const NodePtr node = Find(path);
  if (node == nullptr) return ErrnoError("list " + path, ENOENT);
  if (!node->folder) return ErrnoError("list " + path, ENOTDIR);
  std::vector<std::string> names;
  for (const auto& [name, entry] : node->entries) names.push_back(name);
  return names;
}

bool MemoryFiles::Exists(const std::string& path) {
  MutexLock lock(mutex_);
  return Find(path) != nullptr;
}

void MemoryFiles::Forget(Node& node, Survives survives) {
  if (survives == Survives::kNamesAndFirstHalf && node.content.starts_with(node.durable_content)) {
    const std::size_t fresh = node.content.size() - node.durable_content.size();
    node.content.resize(node.durable_content.size() + fresh / 2);
  } else {
    node.content = node.durable_content;
  }
  node.durable_content = node.content;
  if (survives == Survives::kNothingUnsynced) node.entries = node.durable_entries;
  node.durable_entries = node.entries;
  for (auto& [name, entry] : node.entries) Forget(*entry, survives);
}

void MemoryFiles::Crash(Survives survives) {
  MutexLock lock(mutex_);
  Forget(*root_, survives);
}

}  // namespace muster

#pragma once
// For tests: the machine's files on a disk that is full while `full` is set, and a folder that goes
// away with the test. As on a real disk, the write that hits the end keeps its front half, and a
// file that failed once fails for good.

#include <stdlib.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"

namespace muster::agent {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = "/tmp/muster-agent-XXXXXX";
    MUSTER_CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() { [[maybe_unused]] const Status removed = PosixFiles().RemoveAll(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class FullDisk : public FileSystem {
 public:
  std::atomic<bool> full = false;
  std::atomic<unsigned> writes = 0;  ///< of bytes, those that failed too

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                               const CreateOptions& options) override {
    if (full) return ErrnoError("create " + path, ENOSPC);
    auto file = PosixFiles().Create(path, options);
    if (!file) return file;
    return std::unique_ptr<WritableFile>(std::make_unique<File>(*this, std::move(*file)));
  }
  Result<std::string> ReadAll(const std::string& path, Bytes limit) override {
    return PosixFiles().ReadAll(path, limit);
  }
  Status MakeDirectory(const std::string& path, unsigned mode) override {
    if (full) return ErrnoError("create folder " + path, ENOSPC);
    return PosixFiles().MakeDirectory(path, mode);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return PosixFiles().Rename(from, to);
  }
  Status Exchange(const std::string& a, const std::string& b) override {
    return PosixFiles().Exchange(a, b);
  }
  Status SyncDirectory(const std::string& path) override {
    return PosixFiles().SyncDirectory(path);
  }
  Status RemoveAll(const std::string& path) override { return PosixFiles().RemoveAll(path); }
  Result<std::vector<std::string>> List(const std::string& path) override {
    return PosixFiles().List(path);
  }
  bool Exists(const std::string& path) override { return PosixFiles().Exists(path); }

 private:
  class File final : public WritableFile {
   public:
    File(FullDisk& disk, std::unique_ptr<WritableFile> file)
        : disk_(disk), file_(std::move(file)) {}
    Status Write(ByteSpan data) override {
      ++disk_.writes;
      if (!failed_ && !disk_.full) return file_->Write(data);
      if (!failed_) [[maybe_unused]]
        const Status half = file_->Write(data.first(data.size() / 2));
      failed_ = true;
      return ErrnoError("write", ENOSPC);
    }
    std::uint64_t written() const override { return file_->written(); }
    Status Sync() override { return file_->Sync(); }
    Status Close() override { return file_->Close(); }

   private:
    FullDisk& disk_;
    std::unique_ptr<WritableFile> file_;
    bool failed_ = false;
  };
};

}  // namespace muster::agent

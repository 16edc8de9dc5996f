#include "base/fault_files.h"

#include <cerrno>

namespace muster {

class FaultFiles::File final : public WritableFile {
 public:
  File(FaultFiles& owner, std::unique_ptr<WritableFile> inner, std::string path)
      : owner_(owner), inner_(std::move(inner)), path_(std::move(path)) {}

  Status Write(ByteSpan data) override {
    Status turn = owner_.Next("write " + path_);
    if (turn) return inner_->Write(data);
    if (turn.error().code() == Code::kExhausted) {
      MUSTER_TRY(inner_->Write(data.first(data.size() / 2)));
    }
    return turn;
  }
  std::uint64_t written() const override { return inner_->written(); }
  Status Sync() override {
    MUSTER_TRY(owner_.Next("fsync " + path_));
    return inner_->Sync();
  }
  Status Close() override {
    MUSTER_TRY(owner_.Next("close " + path_));
    return inner_->Close();
  }

 private:
  FaultFiles& owner_;
  std::unique_ptr<WritableFile> inner_;
  std::string path_;
};

Error FaultFiles::Broken(const std::string& what) const {
  switch (plan_.fault) {
    case Fault::kNoSpace:
      return ErrnoError(what, ENOSPC);
    case Fault::kIoError:
      return ErrnoError(what, EIO);
    case Fault::kCrash:
      return {Code::kCancelled, what + ": the process is dead"};
    case Fault::kNoExchange:
      return {Code::kPrecondition, what + ": the file system cannot exchange names"};
  }
  return {Code::kBug, "unknown fault"};
}

Status FaultFiles::Next(const std::string& what) {
  const std::uint64_t index = operations_++;
  if (plan_.fault == Fault::kNoExchange) return Ok();
  const bool goes_on = plan_.lasting || plan_.fault == Fault::kCrash;
  if (index == plan_.at || (goes_on && index > plan_.at)) return Broken(what);
  return Ok();
}

Result<std::unique_ptr<WritableFile>> FaultFiles::Create(const std::string& path,
                                                         const CreateOptions& options) {
  MUSTER_TRY(Next("create " + path));
  auto file = MUSTER_TRY(inner_.Create(path, options));
  return std::unique_ptr<WritableFile>(std::make_unique<File>(*this, std::move(file), path));
}

Result<std::string> FaultFiles::ReadAll(const std::string& path, Bytes limit) {
  return inner_.ReadAll(path, limit);
}

Status FaultFiles::MakeDirectory(const std::string& path, unsigned mode) {
  MUSTER_TRY(Next("create folder " + path));
  return inner_.MakeDirectory(path, mode);
}

Status FaultFiles::Rename(const std::string& from, const std::string& to) {
  MUSTER_TRY(Next("rename " + from + " to " + to));
  return inner_.Rename(from, to);
}

Status FaultFiles::RenameNew(const std::string& from, const std::string& to) {
  MUSTER_TRY(Next("rename " + from + " to " + to));
  return inner_.RenameNew(from, to);
}

Status FaultFiles::Exchange(const std::string& a, const std::string& b) {
  const std::string what = "exchange " + a + " with " + b;
  MUSTER_TRY(Next(what));
  if (plan_.fault == Fault::kNoExchange) return Broken(what);
  return inner_.Exchange(a, b);
}

Status FaultFiles::SyncDirectory(const std::string& path) {
  MUSTER_TRY(Next("fsync " + path));
  return inner_.SyncDirectory(path);
}

Status FaultFiles::RemoveAll(const std::string& path) {
  Status turn = Next("remove " + path);
  // A full disk still lets go of what is on it.
  if (!turn && !(plan_.lasting && turn.error().code() == Code::kExhausted)) return turn;
  return inner_.RemoveAll(path);
}

Result<std::vector<std::string>> FaultFiles::List(const std::string& path) {
  return inner_.List(path);
}

bool FaultFiles::Exists(const std::string& path) { return inner_.Exists(path); }

}  // namespace muster

#include "data/pack/byte_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/fd.h"

namespace muster::data {
namespace {

constexpr std::size_t kBlock = 256u << 10;
constexpr std::string_view kFetchAgain = "the file is cut short or damaged; fetch it again";

class PlainStream final : public ByteStream {
 public:
  PlainStream(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<std::size_t> Read(MutableByteSpan out) override {
    std::size_t have = 0;
    while (have < out.size()) {
      const auto n = ::read(fd_.get(), out.data() + have, out.size() - have);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoError("read " + path_, errno);
      if (n == 0) break;
      have += static_cast<std::size_t>(n);
    }
    return have;
  }
  const std::string& path() const { return path_; }

 private:
  Fd fd_;
  std::string path_;
};

class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(std::unique_ptr<PlainStream> from) : from_(std::move(from)), block_(kBlock) {}
  ~GzipStream() override {
    if (started_) ::inflateEnd(&state_);
  }

  Status Start() {
    constexpr int kGzipOnly = 15 + 16;
    if (::inflateInit2(&state_, kGzipOnly) != Z_OK) {
      return Error(Code::kExhausted, "no memory to inflate " + from_->path());
    }
    started_ = true;
    return Ok();
  }

  Result<std::size_t> Read(MutableByteSpan out) override {
    state_.next_out = reinterpret_cast<Bytef*>(out.data());
    std::size_t left = out.size();
    while (left > 0 && !ended_) {
      if (state_.avail_in == 0) MUSTER_TRY(Refill());
      const auto room = static_cast<uInt>(std::min<std::size_t>(left, 1u << 30));
      state_.avail_out = room;
      const int code = ::inflate(&state_, Z_NO_FLUSH);
      left -= room - state_.avail_out;
      if (code == Z_STREAM_END) {
        MUSTER_TRY(NextMember());
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        return Error(Code::kDataLoss,
                     fmt::format("{}: the gzip data is damaged: {}", from_->path(),
                                 state_.msg != nullptr ? state_.msg : "no reason"),
                     std::string(kFetchAgain));
      }
    }
    return out.size() - left;
  }

 private:
  Status Refill() {
    const std::size_t n = MUSTER_TRY(from_->Read(block_));
    if (n == 0) {
      return Error(Code::kDataLoss, fmt::format("{}: the gzip data ends too early", from_->path()),
                   std::string(kFetchAgain));
    }
    state_.next_in = reinterpret_cast<Bytef*>(block_.data());
    state_.avail_in = static_cast<uInt>(n);
    return Ok();
  }

  /// Members may follow each other; anything else behind the last one is refused, as it is behind a
  /// file that is not compressed.
  Status NextMember() {
    if (state_.avail_in == 0) {
      const std::size_t n = MUSTER_TRY(from_->Read(block_));
      state_.next_in = reinterpret_cast<Bytef*>(block_.data());
      state_.avail_in = static_cast<uInt>(n);
    }
    ended_ = state_.avail_in == 0;
    if (!ended_ && *state_.next_in != 0x1f) {
      return Error(Code::kDataLoss,
                   fmt::format("{}: there are bytes behind the gzip data", from_->path()),
                   std::string(kFetchAgain));
    }
    if (!ended_) ::inflateReset(&state_);
    return Ok();
  }

  std::unique_ptr<PlainStream> from_;
  std::vector<std::byte> block_;
  z_stream state_{};
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteStream>> ByteStream::Open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoError("open " + path, errno);
  struct stat info{};
  if (::fstat(fd.get(), &info) < 0) return ErrnoError("stat " + path, errno);
  if (!S_ISREG(info.st_mode)) return Error(Code::kPrecondition, path + " is not a regular file");
  std::byte magic[2];
  const auto n = ::pread(fd.get(), magic, sizeof magic, 0);
  if (n < 0) return ErrnoError("read " + path, errno);
  auto plain = std::make_unique<PlainStream>(std::move(fd), path);
  if (n < 2 || magic[0] != std::byte{0x1f} || magic[1] != std::byte{0x8b}) {
    return std::unique_ptr<ByteStream>(std::move(plain));
  }
  auto gzip = std::make_unique<GzipStream>(std::move(plain));
  MUSTER_TRY(gzip->Start());
  return std::unique_ptr<ByteStream>(std::move(gzip));
}

}  // namespace muster::data

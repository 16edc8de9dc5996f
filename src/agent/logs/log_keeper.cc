#include "agent/logs/log_keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <future>
#include <map>
#include <optional>

#include "agent/logs/log_file.h"
#include "agent/logs/log_marks.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "os/wait_fd.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;

constexpr int kPipeBytes = 1 << 20;
constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::size_t kMostWritten = std::size_t{1} << 20;  // at once, of one stream

struct Log {
  Log(const LogId& log_id, Bytes capacity, std::uint64_t file_size)
      : id(log_id), size(file_size), buffer(capacity) {}
  const LogId id;
  const std::uint64_t size;  // of its file, before
  StreamBuffer buffer;
  Fd pipe;                                    // the reader's, once handed over
  Instant deadline = kNever;                  // under the keeper's mutex
  bool written_out = false;                   // under the keeper's mutex
  std::array<std::uint64_t, 3> unreported{};  // by WhyLost, under the keeper's mutex
  bool is_reported() const { return unreported == std::array<std::uint64_t, 3>{}; }
};
using LogPointer = std::shared_ptr<Log>;

}  // namespace

class LogKeeper::Impl {
 public:
  explicit Impl(const LogKeeperOptions& options, Fd wake)
      : options_(options), wake_(std::move(wake)) {}

  static Status Begin(const std::shared_ptr<Impl>& impl) {
    impl->reader_ = MUSTER_TRY(
        StartThread("log-reader", [keeper = impl.get()](const auto&) { keeper->Read(); }));
    const auto done = std::make_shared<std::promise<void>>();
    impl->writer_done_ = done->get_future();
    // It holds what it uses: a write that hangs may come back when nobody waits for it any more.
    auto writer = StartThread("log-writer", [impl, done](const auto&) {
      impl->Write();
      done->set_value();
    });
    if (!writer) {
      impl->EndReader(impl->options_.clock->Now());
      return std::move(writer.error());
    }
    impl->writer_ = *std::move(writer);
    impl->options_.console->OnText([keeper = impl.get()] { keeper->NotifyWriter(); });
    return Ok();
  }

  Status Add(const LogId& id, Fd pipe, std::uint64_t size) {
    if (::fcntl(pipe.get(), F_SETFL, O_NONBLOCK) < 0) return ErrnoError("pipe", errno);
    // Best effort: an unprivileged user has only so much memory for pipes.
    ::fcntl(pipe.get(), F_SETPIPE_SZ, kPipeBytes);
    auto log = std::make_shared<Log>(id, options_.stream_capacity, size);
    log->pipe = std::move(pipe);
    const MutexLock lock(mutex_);
    logs_[id] = log;
    arriving_.push_back(std::move(log));
    Wake();
    return Ok();
  }

  void Finish(Rank rank, Generation generation, Instant deadline) {
    const MutexLock lock(mutex_);
    for (auto& [id, log] : logs_) {
      if (id.rank == rank && id.generation == generation) {
        log->deadline = std::min(log->deadline, deadline);
      }
    }
    Wake();
  }

  LogPointer Find(const LogId& id) const {
    const MutexLock lock(mutex_);
    const auto found = logs_.find(id);
    return found == logs_.end() ? nullptr : found->second;
  }

  void Forget(Generation up_to) {
    const MutexLock lock(mutex_);
    std::erase_if(logs_, [&](const auto& entry) {
      return entry.first.generation <= up_to && entry.second->written_out &&
             entry.second->is_reported();
    });
  }

  std::vector<LogLoss> TakeLosses() {
    std::vector<LogLoss> losses;
    const MutexLock lock(mutex_);
    for (auto& [id, log] : logs_) {
      for (const WhyLost why : {WhyLost::kTooFast, WhyLost::kNoRoom, WhyLost::kFailed}) {
        std::uint64_t& bytes = log->unreported[static_cast<std::size_t>(why)];
        if (bytes > 0) losses.push_back({id, std::exchange(bytes, 0), why});
      }
    }
    return losses;
  }

  bool Stop(std::chrono::nanoseconds limit) {
    if (!stopped_) stopped_ = StopOnce(limit);
    return *stopped_;
  }

 private:
  bool StopOnce(std::chrono::nanoseconds limit) {
    EndReader(options_.clock->Now() + limit);
    {
      const MutexLock lock(mutex_);
      reader_done_ = true;
      work_.NotifyAll();
    }
    // Half a second more than the pipes got; a write that hangs longer hangs in the kernel.
    if (writer_done_.wait_for(limit + milliseconds(500)) != std::future_status::ready) {
      writer_.detach();  // allow: hangs in the kernel, join would hang too
      return false;
    }
    writer_.join();
    return true;
  }

  void EndReader(Instant deadline) {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
      for (auto& [id, log] : logs_) log->deadline = std::min(log->deadline, deadline);
      Wake();
    }
    reader_.join();
    options_.console->OnText({});
  }

  void Wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(wake_.get(), &one, sizeof(one));
  }

  // The reader thread.
  void Read() {
    std::vector<LogPointer> open;
    for (;;) {
      Instant next = kNever;
      {
        const MutexLock lock(mutex_);
        for (LogPointer& log : arriving_) open.push_back(std::move(log));
        arriving_.clear();
        if (stopping_ && open.empty()) return;
        for (const LogPointer& log : open) next = std::min(next, log->deadline);
      }
      PollOnce(open, next);
      CloseExpired(open);
    }
  }

  void PollOnce(std::vector<LogPointer>& open, Instant next) {
    std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
    for (const LogPointer& log : open) polled.push_back({log->pipe.get(), POLLIN, 0});
    int timeout_ms = -1;
    if (next != kNever) {
      const auto left = std::chrono::ceil<milliseconds>(next - options_.clock->Now());
      timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
    }
    if (::poll(polled.data(), polled.size(), timeout_ms) <= 0) return;
    if (polled[0].revents != 0) os::DrainFd(wake_.get());
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (polled[i + 1].revents != 0) ReadSome(*open[i]);
    }
    std::erase_if(open, [](const LogPointer& log) { return !log->pipe.valid(); });
  }

  /// At most 1 MiB, so that one flood does not starve the other pipes.
  void ReadSome(Log& log) {
    for (int round = 0; round < 16; ++round) {
      const ssize_t n = ::read(log.pipe.get(), block_.data(), block_.size());
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (n <= 0) {
        End(log);
        break;
      }
      const std::string_view bytes(block_.data(), static_cast<std::size_t>(n));
      log.buffer.Append(std::string(bytes), options_.clock->Now());
      if (options_.tap) options_.tap(log.id, bytes);
      if (static_cast<std::size_t>(n) < block_.size()) break;
    }
    NotifyWriter();
  }

  void End(Log& log) {
    log.pipe.Reset();
    log.buffer.End();
  }

  void CloseExpired(std::vector<LogPointer>& open) {
    const Instant now = options_.clock->Now();
    bool any = false;
    for (const LogPointer& log : open) {
      {
        const MutexLock lock(mutex_);
        if (log->deadline > now) continue;
      }
      ReadSome(*log);
      if (log->pipe.valid()) End(*log);
      any = true;
    }
    std::erase_if(open, [](const LogPointer& log) { return !log->pipe.valid(); });
    if (any) NotifyWriter();
  }

  void NotifyWriter() {
    const MutexLock lock(mutex_);
    work_pending_ = true;
    work_.NotifyOne();
  }

  // The writer thread.
  struct Output {
    LogPointer log;
    LogFile file;
    LogMarks marks;
    LineFramer framer;
    bool begun = false;
  };

  void Write() {
    std::map<LogId, Output> outputs;
    for (;;) {
      bool last = false;
      {
        // The console may hold text that did not fit; it is tried again now and then.
        const Instant again = SystemClock().Now() + milliseconds(100);
        const MutexLock lock(mutex_);
        while (!work_pending_ && !reader_done_ && work_.WaitUntil(mutex_, again)) {
        }
        work_pending_ = false;
        last = reader_done_;
        for (const auto& [id, log] : logs_) {
          if (!log->written_out && !outputs.contains(id)) outputs.emplace(id, NewOutput(log));
        }
      }
      for (auto& [id, output] : outputs) {
        if (output.log->buffer.has_news()) WriteOut(output);
      }
      std::erase_if(outputs, [&](auto& entry) { return IsOut(entry.second); });
      options_.console->Pump();
      if (last) return;
    }
  }

  Output NewOutput(const LogPointer& log) {
    const std::string path = PathOf(options_.folder, log->id);
    return {log, LogFile(*options_.files, path + ".log", log->size),
            LogMarks(*options_.files, path + ".idx"), LineFramer(), false};
  }

  void WriteOut(Output& output) {
    StreamBuffer::Taken taken = output.log->buffer.Take();
    std::uint64_t lost = 0;
    if (!std::exchange(output.begun, true)) lost += output.file.Append(0, "");
    if (taken.dropped > 0) {
      output.file.Append(taken.dropped, "");
      output.framer.Break();
    }
    while (!taken.chunks.empty()) {
      const std::string bytes = TakeBatch(taken.chunks, output);
      output.marks.Write();
      lost += output.file.Append(0, bytes);
      Show(output, output.framer.Add(bytes));
    }
    if (taken.ended) Show(output, output.framer.Finish());
    const MutexLock lock(mutex_);
    const WhyLost why = output.file.no_room() ? WhyLost::kNoRoom : WhyLost::kFailed;
    output.log->unreported[static_cast<std::size_t>(WhyLost::kTooFast)] += taken.dropped;
    output.log->unreported[static_cast<std::size_t>(why)] += lost;
    output.log->written_out = taken.ended;
  }

  /// What waits goes out in large pieces, or a slow disk would see a write for every line.
  static std::string TakeBatch(std::deque<StreamBuffer::Chunk>& chunks, Output& output) {
    std::string bytes;
    do {
      output.marks.Add(chunks.front().at, output.file.size() + bytes.size());
      bytes += chunks.front().bytes;
      chunks.pop_front();
    } while (!chunks.empty() && bytes.size() + chunks.front().bytes.size() <= kMostWritten);
    return bytes;
  }

  void Show(const Output& output, const std::vector<Line>& lines) {
    const LogId& id = output.log->id;
    for (const Line& line : lines) {
      options_.console->WorkerLine(id.rank, id.generation, id.stream, line);
    }
  }

  bool IsOut(const Output& output) const {
    const MutexLock lock(mutex_);
    return output.log->written_out;
  }

  const LogKeeperOptions options_;
  const Fd wake_;
  std::array<char, kReadBytes> block_{};  // the reader's
  mutable Mutex mutex_;
  CondVar work_;
  std::map<LogId, LogPointer> logs_ MUSTER_GUARDED_BY(mutex_);
  std::vector<LogPointer> arriving_ MUSTER_GUARDED_BY(mutex_);
  bool work_pending_ MUSTER_GUARDED_BY(mutex_) = false;
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  bool reader_done_ MUSTER_GUARDED_BY(mutex_) = false;
  std::jthread reader_;
  std::jthread writer_;
  std::future<void> writer_done_;
  std::optional<bool> stopped_;  ///< what the first Stop said
};

Result<std::unique_ptr<LogKeeper>> LogKeeper::Start(const LogKeeperOptions& options) {
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoError("eventfd", errno);
  if (!options.files->Exists(options.folder)) {
    MUSTER_TRY(options.files->MakeDirectory(options.folder, 0700));
  }
  auto impl = std::make_shared<Impl>(options, std::move(wake));
  MUSTER_TRY(Within("logs", Impl::Begin(impl)));
  return std::unique_ptr<LogKeeper>(new LogKeeper(std::move(impl)));
}

LogKeeper::LogKeeper(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
LogKeeper::~LogKeeper() { impl_->Stop(milliseconds(500)); }

std::string LogKeeper::PathOf(const std::string& folder, const LogId& id) {
  return fmt::format("{}/rank-{}/gen-{}.{}", folder, id.rank.value(), id.generation.value(),
                     NameOf(id.stream));
}

Status LogKeeper::Add(const LogId& id, Fd pipe, std::uint64_t size) {
  return impl_->Add(id, std::move(pipe), size);
}
void LogKeeper::Finish(Rank rank, Generation generation, Instant deadline) {
  impl_->Finish(rank, generation, deadline);
}
bool LogKeeper::Ended(const LogId& id) const {
  const auto log = impl_->Find(id);
  return !log || log->buffer.ended();
}
std::string LogKeeper::Tail(const LogId& id) const {
  const auto log = impl_->Find(id);
  return log ? log->buffer.Tail() : std::string();
}
std::string LogKeeper::LastWords(const LogId& id, std::chrono::nanoseconds limit) const {
  const auto log = impl_->Find(id);
  if (!log) return {};
  log->buffer.AwaitEnd(SystemClock().Now() + limit);
  return log->buffer.Tail();
}
void LogKeeper::Forget(Generation up_to) { impl_->Forget(up_to); }
std::vector<LogLoss> LogKeeper::TakeLosses() { return impl_->TakeLosses(); }
bool LogKeeper::Stop(std::chrono::nanoseconds limit) { return impl_->Stop(limit); }

}  // namespace muster::agent

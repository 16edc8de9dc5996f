// What keeping the logs of many workers costs, loses, and does to the workers. Prints one JSON
// object.
//
//   log_keeper_bench flood FOLDER WORKERS BYTES
//     Each worker, a process, writes BYTES of a trainer's lines into its pipe as fast as it can, 1
//     MB lines, CR, NUL and bytes that are no UTF-8 among them, and is killed at once.
//     {"bytes", "cpu_s" of the keeper's process, "lost": bytes that differ from what was written}
//   log_keeper_bench slow FOLDER WORKERS SECONDS
//     Each worker writes a line every 10 ms, by turns into its pipe and into /dev/null, while each
//     write of the keeper to its disk takes 100 ms.
//     {"writes", "pipe_p999_s", "null_p999_s", "pipe_max_s", "lost"}
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "agent/logs/log_keeper.h"
#include "agent/testing/full_disk.h"
#include "base/rng.h"

namespace {

using namespace muster;
using agent::Console;
using agent::LogId;
using agent::LogKeeper;

constexpr std::size_t kWrite = std::size_t{64} << 10;
constexpr auto kPause = std::chrono::milliseconds(10);
constexpr auto kSlowWrite = std::chrono::milliseconds(100);
constexpr auto kLimit = std::chrono::seconds(60);
constexpr std::size_t kMostWrites = 1 << 16;

/// What workers tell, in memory that they share with us.
struct Told {
  std::uint64_t bytes;  ///< that write(2) took
  std::uint64_t writes;
  std::array<float, kMostWrites> pipe_s, null_s;
};

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

/// The machine's files, whose writes take their time.
class SlowDisk final : public agent::FullDisk {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                               const CreateOptions& options) override {
    auto file = FullDisk::Create(path, options);
    if (!file) return file;
    return std::unique_ptr<WritableFile>(std::make_unique<File>(std::move(*file)));
  }

 private:
  class File final : public WritableFile {
   public:
    explicit File(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
    Status Write(ByteSpan data) override {
      std::this_thread::sleep_for(kSlowWrite);
      return file_->Write(data);
    }
    std::uint64_t written() const override { return file_->written(); }
    Status Sync() override { return file_->Sync(); }
    Status Close() override { return file_->Close(); }

   private:
    std::unique_ptr<WritableFile> file_;
  };
};

/// What worker `rank` writes: lines of 90 bytes, and now and then what breaks log tails.
std::string TextOf(unsigned rank, std::size_t bytes) {
  Rng rng(rank + 1);
  std::string text;
  while (text.size() < bytes) {
    text += fmt::format("2026-11-30 21:38:14 [INFO] rank {} step {} loss={:.4f} tok/s {}\n", rank,
                        text.size(), static_cast<double>(rng.Below(9000)) / 1000, rng.Below(9999));
    if (rng.Below(1000) == 0) text += fmt::format(" 50%|#####     |\r{}\xff\xfe{}\n", '\0', '\x80');
    if (rng.Below(40'000) == 0) text += std::string(1'000'000, 'x') + '\n';
  }
  text.resize(bytes);
  return text;
}

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime);
}

/// A process that does `work` once `gate` closes, and is then killed at once, as it stands.
template <typename Work>
pid_t Fork(int gate, int gate_writer, Work work) {
  const pid_t pid = ::fork();
  if (pid < 0) Die("fork");
  if (pid > 0) return pid;
  ::close(gate_writer);
  char nothing = 0;
  [[maybe_unused]] const auto n = ::read(gate, &nothing, 1);
  work();
  std::raise(SIGKILL);
  std::abort();
}

struct Pipe {
  Fd read, write;
  static Pipe Make() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) < 0) Die("pipe");
    return {Fd(ends[0]), Fd(ends[1])};
  }
};

float Timed(int fd, std::string_view line) {
  const Instant begin = MonotonicClock::now();
  if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) Die("write");
  return std::chrono::duration<float>(MonotonicClock::now() - begin).count();
}

void WriteSlowly(int fd, std::string_view text, std::chrono::seconds duration, Told& told) {
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const Instant end = MonotonicClock::now() + duration;
  for (std::size_t at = 0; MonotonicClock::now() < end && told.writes < kMostWrites;) {
    const std::size_t newline = text.find('\n', at);
    if (newline == std::string_view::npos) break;
    const std::string_view line = text.substr(at, newline + 1 - at);
    told.null_s[told.writes] = Timed(null, line);
    told.pipe_s[told.writes++] = Timed(fd, line);
    told.bytes += line.size();
    at = newline + 1;
    std::this_thread::sleep_for(kPause);
  }
}

void WriteAtOnce(int fd, std::string_view text, Told& told) {
  while (told.bytes < text.size()) {
    const ssize_t n =
        ::write(fd, text.data() + told.bytes, std::min(kWrite, text.size() - told.bytes));
    if (n > 0) told.bytes += static_cast<std::uint64_t>(n);
  }
}

/// Bytes of what was told that the file does not hold, or that it holds beyond.
std::uint64_t Lost(const std::string& path, std::string_view text, std::uint64_t told) {
  const auto kept = PosixFiles().ReadAll(path, 1_GiB);
  if (!kept) return told;
  const std::size_t common = std::min<std::size_t>(kept->size(), told);
  std::uint64_t lost = std::max<std::size_t>(kept->size(), told) - common;
  for (std::size_t i = 0; i < common; ++i) lost += (*kept)[i] != text[i] ? 1 : 0;
  return lost;
}

double Percentile(std::vector<float>& values, double fraction) {
  const auto at = values.begin() +
                  static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * fraction);
  std::nth_element(values.begin(), at, values.end());
  return static_cast<double>(*at);
}

class Bench {
 public:
  Bench(std::string folder, unsigned workers, bool slow, std::uint64_t amount)
      : folder_(std::move(folder)), slow_(slow), amount_(amount), told_(workers) {
    for (Told*& told : told_) {
      void* page =
          ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (page == MAP_FAILED) Die("mmap");
      told = static_cast<Told*>(page);
    }
    const std::size_t bytes = slow ? std::size_t{4} << 20 : amount;
    for (unsigned rank = 0; rank < workers; ++rank) texts_.push_back(TextOf(rank, bytes));
  }

  void Run() {
    ForkWorkers();
    SlowDisk slow;
    const auto console =
        std::make_shared<Console>(agent::ConsoleOptions{.quiet = true}, SystemClock());
    auto keeper =
        LogKeeper::Start({.files = slow_ ? static_cast<FileSystem*>(&slow) : &PosixFiles(),
                          .folder = folder_,
                          .console = console,
                          .clock = &SystemClock()});
    if (!keeper) Die(keeper.error().message().c_str());
    for (unsigned rank = 0; rank < told_.size(); ++rank) {
      if (!(*keeper)->Add(IdOf(rank), std::move(pipes_[rank].read))) Die("add");
    }
    const double before = CpuSeconds();
    gate_.write.Reset();
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
    for (unsigned rank = 0; rank < told_.size(); ++rank) {
      (*keeper)->Finish(Rank(rank), Generation(1), MonotonicClock::now() + kLimit);
    }
    if (!(*keeper)->Stop(kLimit)) Die("the keeper's writes did not come back");
    Tell(CpuSeconds() - before);
  }

 private:
  static LogId IdOf(unsigned rank) { return {.rank = Rank(rank), .generation = Generation(1)}; }

  void ForkWorkers() {
    for (unsigned rank = 0; rank < told_.size(); ++rank) {
      pipes_.push_back(Pipe::Make());
      const int fd = pipes_.back().write.get();
      pids_.push_back(Fork(gate_.read.get(), gate_.write.get(), [&] {
        slow_ ? WriteSlowly(fd, texts_[rank], std::chrono::seconds(amount_), *told_[rank])
              : WriteAtOnce(fd, texts_[rank], *told_[rank]);
      }));
    }
    for (Pipe& pipe : pipes_) pipe.write.Reset();
  }

  void Tell(double cpu_s) {
    std::uint64_t bytes = 0, lost = 0;
    std::vector<float> pipe, null;
    for (unsigned rank = 0; rank < told_.size(); ++rank) {
      const Told& told = *told_[rank];
      bytes += told.bytes;
      lost += Lost(LogKeeper::PathOf(folder_, IdOf(rank)) + ".log", texts_[rank], told.bytes);
      pipe.insert(pipe.end(), told.pipe_s.begin(), told.pipe_s.begin() + told.writes);
      null.insert(null.end(), told.null_s.begin(), told.null_s.begin() + told.writes);
    }
    if (!slow_)
      return fmt::print("{{\"bytes\": {}, \"cpu_s\": {}, \"lost\": {}}}\n", bytes, cpu_s, lost);
    fmt::print(
        "{{\"writes\": {}, \"pipe_p999_s\": {}, \"null_p999_s\": {}, \"pipe_max_s\": {}, \"lost\": "
        "{}}}\n",
        pipe.size(), Percentile(pipe, 0.999), Percentile(null, 0.999), Percentile(pipe, 1), lost);
  }

  const std::string folder_;
  const bool slow_;
  const std::uint64_t amount_;
  std::vector<Told*> told_;
  std::vector<std::string> texts_;
  std::vector<Pipe> pipes_;
  std::vector<pid_t> pids_;
  Pipe gate_ = Pipe::Make();
};

}  // namespace

int main(int count, char** words) {
  const std::string_view mode = count == 5 ? words[1] : "";
  if (mode != "flood" && mode != "slow") {
    std::fprintf(stderr, "log_keeper_bench flood|slow FOLDER WORKERS BYTES|SECONDS\n");
    return 2;
  }
  Bench(words[2], static_cast<unsigned>(std::atoi(words[3])), mode == "slow",
        static_cast<std::uint64_t>(std::atoll(words[4])))
      .Run();
  return 0;
}

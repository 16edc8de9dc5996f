#include "agent/health/kernel_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace muster::agent::health {

std::optional<std::uint64_t> TroubleGate::Pass(const Trouble& trouble, Instant time) {
  const auto key = std::tuple(trouble.kind, trouble.code.value_or(0), trouble.device);
  const auto found = told_.find(key);
  if (found == told_.end()) {
    if (told_.size() >= kMostKinds) return std::nullopt;
    told_.emplace(key, Told{.time = time, .kept = 0});
    return 0;
  }
  Told& told = found->second;
  if (time - told.time < kQuiet) {
    ++told.kept;
    return std::nullopt;
  }
  const std::uint64_t kept = told.kept;
  told = {.time = time, .kept = 0};
  return kept;
}

Result<KernelLog> KernelLog::Open(const std::string& path, From from) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError("open " + path, errno);
  struct stat state{};
  if (::fstat(fd.get(), &state) != 0) return ErrnoError("look at " + path, errno);
  const bool lines = S_ISREG(state.st_mode);
  if (::lseek(fd.get(), 0, from == From::kBoot ? SEEK_SET : SEEK_END) < 0)
    return ErrnoError("seek in " + path, errno);
  return KernelLog(std::move(fd), lines);
}

void KernelLog::Take(std::string_view record, std::vector<ToldTrouble>& out) {
  const auto parsed = ParseKmsg(record);
  if (!parsed) {
    ++missed_;
    return;
  }
  auto trouble = JudgeKernelLine(*parsed);
  if (!trouble) return;
  const Instant time{std::chrono::duration_cast<std::chrono::nanoseconds>(parsed->time)};
  const auto repeats = gate_.Pass(*trouble, time);
  if (!repeats) return;
  out.push_back(
      {.trouble = *std::move(trouble), .time = time, .line = parsed->text, .repeats = *repeats});
}

std::vector<ToldTrouble> KernelLog::Read() {
  if (lines_) return ReadLines();
  std::vector<ToldTrouble> out;
  std::array<char, kMostKmsgRecord> buffer{};
  for (int i = 0; i < kMostRecords; ++i) {
    const ssize_t size = ::read(fd_.get(), buffer.data(), buffer.size());
    if (size > 0) {
      Take({buffer.data(), static_cast<std::size_t>(size)}, out);
    } else if (size < 0 && errno == EPIPE) {
      ++missed_;  // overwritten; the next read is at the oldest that is left
    } else if (size == 0 || (errno != EINTR && errno != EINVAL)) {
      break;
    }
  }
  return out;
}

std::vector<ToldTrouble> KernelLog::ReadLines() {
  std::vector<ToldTrouble> out;
  std::array<char, kMostKmsgRecord> buffer{};
  for (int i = 0; i < kMostRecords; ++i) {
    const ssize_t size = ::read(fd_.get(), buffer.data(), buffer.size());
    if (size <= 0) break;
    rest_.append(buffer.data(), static_cast<std::size_t>(size));
    std::size_t begin = 0;
    for (auto end = rest_.find('\n', begin); end != std::string::npos;
         end = rest_.find('\n', begin)) {
      // A line that begins with a blank belongs to the one above, which is judged without it.
      const std::string_view line = std::string_view(rest_).substr(begin, end - begin);
      if (!line.empty() && line[0] != ' ') Take(line, out);
      begin = end + 1;
    }
    rest_.erase(0, begin);
    if (rest_.size() > kMostKmsgRecord) {
      rest_.clear();
      ++missed_;
    }
  }
  return out;
}

}  // namespace muster::agent::health

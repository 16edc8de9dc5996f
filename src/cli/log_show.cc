#include "cli/log_show.h"

#include <fmt/format.h>

#include <optional>

#include "base/text.h"
#include "cli/live.h"
#include "cli/verb.h"

namespace muster::cli {
namespace {

constexpr std::size_t kFlushAt = 64 << 10;
constexpr std::chrono::milliseconds kLookEvery{100};
constexpr int kRoundsPerDiscovery = 3;

class Shown {
 public:
  Shown(const profile::RunFiles& files, profile::LogReader& reader, const LogLook& look)
      : files_(files), reader_(reader), printer_(look) {}

  Result<int> Now() {
    printer_.Begin();
    MUSTER_TRY(Read(true));
    printer_.End();
    MUSTER_TRY(Flush());
    return 0;
  }

  /// The lock is looked at before the logs: what the run had written is then there.
  Result<int> Follow() {
    live_.emplace(MUSTER_TRY(Live::Begin({})));
    printer_.Begin();
    MUSTER_TRY(Read(false));
    MUSTER_TRY(Flush());
    reader_.GoOn();
    for (int round = 1; !gone_; ++round) {
      const bool over = !files_.LockHeld();
      if (over || round % kRoundsPerDiscovery == 0) MUSTER_TRY(reader_.Discover());
      MUSTER_TRY(Read(over));
      if (over) printer_.End();
      MUSTER_TRY(Flush());
      if (over || gone_) break;
      gone_ = live_->Wait(kLookEvery) == Live::Woke::kStop;
    }
    const int code = live_->exit_code();
    live_.reset();
    if (code == 0) return 0;
    printer_.End();
    MUSTER_TRY(Flush());
    return code;
  }

 private:
  Status Read(bool to_end) {
    Status written = Ok();
    const auto take = [&](const profile::LogPiece& piece) {
      printer_.Add(piece);
      if (printer_.text().size() >= kFlushAt) written = Flush();
      return written.has_value() && !gone_;
    };
    const auto stopped = [this] {
      gone_ = gone_ || (live_ && live_->Stopped());
      return gone_;
    };
    reader_.Read(to_end, take, stopped);
    for (const std::string& note : reader_.TakeNotes()) {
      Note(fmt::format("muster: {}\n", PlainLine(note)));
    }
    return written;
  }

  Status Flush() {
    if (live_) {
      gone_ = gone_ || !live_->Write(printer_.text());
    } else {
      MUSTER_TRY(Print(printer_.text()));
    }
    printer_.Clear();
    return Ok();
  }

  const profile::RunFiles& files_;
  profile::LogReader& reader_;
  LogPrinter printer_;
  std::optional<Live> live_;
  bool gone_ = false;  ///< nobody reads, or a signal came
};

}  // namespace

Result<int> ShowLogs(const profile::RunFiles& files, profile::LogReader& reader,
                     const LogLook& look, bool follow) {
  Shown shown(files, reader, look);
  return follow ? shown.Follow() : shown.Now();
}

}  // namespace muster::cli

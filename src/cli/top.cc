// muster top [RUN]: the ranks of a run as they stand, on a terminal; line by line when piped.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "base/absent.h"
#include "base/host_name.h"
#include "cli/screen.h"
#include "cli/verb.h"
#include "profile/live/live_text.h"
#include "profile/live/newest_run.h"
#include "profile/report/run_files.h"

namespace muster::cli {
namespace {

using profile::LiveRun;

constexpr std::chrono::milliseconds kLookEvery{500};
constexpr std::size_t kMostHappened = 200;

struct TopFlags {
  std::string folder;
  bool once = false;
};

/// One call of the verb.
class Top {
 public:
  explicit Top(LiveRun run) : run_(std::move(run)) {}

  Result<int> Once(bool json) {
    Poll();
    if (json) {
      MUSTER_TRY(Print(TopJson(run_, happened_)));
      return 0;
    }
    MUSTER_TRY(PrintText(Table({.columns = 0, .rows = 0})));
    return 0;
  }

  /// A line for each change, until the run is over.
  Result<int> Lines() {
    Live live = MUSTER_TRY(Live::Begin({}));
    for (;;) {
      std::string text;
      for (const auto& happening : Poll()) text += HappeningLine(run_, happening) + "\n";
      for (std::uint32_t rank = 0; rank < run_.ranks().size(); ++rank) {
        std::string line = RankLine(run_, rank);
        if (line == told_[rank]) continue;
        text += line + "\n";
        told_[rank] = std::move(line);
      }
      if (!live.Write(text)) return live.exit_code();
      if (IsOver()) return 0;
      if (live.Wait(kLookEvery) == Live::Woke::kStop) return live.exit_code();
    }
  }

  Result<int> OnScreen() {
    Live live = MUSTER_TRY(Live::Begin({.input = ::isatty(STDIN_FILENO) == 1, .terminal = true}));
    {
      Screen screen(live);
      screen.Enter();
      if (!Watch(live, screen)) return live.exit_code();
    }
    // The last picture stays where the cursor is.
    MUSTER_TRY(PrintText(Table({.columns = 0, .rows = 0})));
    return 0;
  }

 private:
  bool IsOver() const { return run_.state() != LiveRun::State::kRunning; }

  std::vector<profile::Happening> Poll() {
    auto news = run_.Poll();
    happened_.insert(happened_.end(), news.begin(), news.end());
    while (happened_.size() > kMostHappened) happened_.pop_front();
    return news;
  }

  profile::TopLook Look(const Screen::Size& size) const {
    std::optional<std::int64_t> now;
    // Another host counts from another start.
    if (run_.facts().host == HostName()) now = SystemClock().Now().time_since_epoch().count();
    return {.columns = size.columns, .rows = size.rows, .now_ns = now};
  }

  std::string Table(const Screen::Size& size) const {
    std::string text;
    for (const std::string& line : TopLines(run_, happened_, Look(size))) text += line + "\n";
    return text;
  }

  /// Until the run is over or q is typed: true; a signal or no terminal any more: false.
  bool Watch(Live& live, Screen& screen) {
    for (;;) {
      Poll();
      if (IsOver()) return true;
      if (!screen.Draw(TopLines(run_, happened_, Look(screen.size())))) return false;
      switch (live.Wait(kLookEvery)) {
        case Live::Woke::kStop:
          return false;
        case Live::Woke::kInput:
          if (const char key = screen.TakeKey(); key == 'q' || key == 'Q') return true;
          break;
        case Live::Woke::kSuspend:
          screen.Leave();
          live.Suspend();
          screen.Enter();
          break;
        case Live::Woke::kTime:
        case Live::Woke::kResized:
          break;
      }
    }
  }

  LiveRun run_;
  std::deque<profile::Happening> happened_;
  std::vector<std::string> told_ = std::vector<std::string>(run_.ranks().size());
};

Result<int> ShowTop(const TopFlags& flags, bool json) {
  const std::string folder =
      flags.folder.empty() ? MUSTER_TRY(profile::NewestRun("runs")) : flags.folder;
  const auto files = MUSTER_TRY(profile::RunFiles::Open(folder));
  Top top(MUSTER_TRY(LiveRun::Open(files)));
  if (json || flags.once) return top.Once(json);
  return ::isatty(STDOUT_FILENO) == 1 ? top.OnScreen() : top.Lines();
}

}  // namespace

void AddTop(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(
      parent, "top", "The ranks of a run as they stand: state, step, step time, lag", invocation);
  app->footer(
      "Twice a second on a terminal, q ends it; piped, a line for each change. It ends with the\n"
      "run.");
  auto flags = std::make_shared<TopFlags>();
  app->add_option("RUN", flags->folder,
                  "The run's folder; without it the newest below ./runs that goes on, else the "
                  "newest");
  app->add_flag("--once", flags->once, "One table, at once; so does --json");
  app->callback([flags, &invocation] {
    invocation.action = [flags, &invocation] { return ShowTop(*flags, invocation.json); };
  });
}

}  // namespace muster::cli

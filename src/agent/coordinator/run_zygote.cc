#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "agent/coordinator/run_loop.h"
#include "os/signals.h"

namespace muster::agent {
namespace {

constexpr int kMaxZygoteDeaths = 3;
// A file system that a thousand nodes load torch from at once is slow.
constexpr auto kZygoteLoads = std::chrono::minutes(10);
constexpr Bytes kZygoteLog{1 << 20};
constexpr const char* kExecuted = "workers are executed from now on";

std::string What(const RunOptions& options) {
  return options.preload.empty() ? "its program" : options.preload;
}

}  // namespace

/// Starts the zygote when there is none, so that it is warm before it is needed.
void RunLoop::EnsureZygote() {
  if (!state_.use_zygote || zygote_alive_) return;
  zygote_alive_ = zygote_deaths_ <= kMaxZygoteDeaths && launcher_->StartZygote(*shim_).has_value();
  state_.use_zygote = zygote_alive_;
  zygote_ready_ = false;
  zygote_began_ = clock_.Now();
}

bool RunLoop::AwaitsZygote() const {
  return start_ && state_.use_zygote && zygote_alive_ && !zygote_ready_;
}

/// The limit of a start passed while the zygote loads.
void RunLoop::GiveZygoteTime() {
  const auto passed = clock_.Now() - zygote_began_;
  if (passed < kZygoteLoads) {
    console_->Say(fmt::format("muster: the fork server still loads {} ({} s)", What(options_),
                              std::chrono::duration_cast<std::chrono::seconds>(passed).count()));
  } else {
    console_->Say(fmt::format("muster: the fork server did not load {} in {} minutes; {}",
                              What(options_), kZygoteLoads.count(), kExecuted));
    state_.use_zygote = false;
  }
  Feed({.kind = Event::Kind::kLoading});
  StartWhenWritten();
}

void RunLoop::HandleZygote(const shim::Zygote& zygote) {
  if (zygote.alive != 0) {
    if (zygote.ready == 0 || std::exchange(zygote_ready_, true)) return;
    zygote_was_ready_ = true;
    events_.Add("zygote_ready", {{"pid", zygote.pid}});
    Feed({.kind = Event::Kind::kLoading});
    return StartWhenWritten();
  }
  zygote_alive_ = false;
  ++zygote_deaths_;
  if (!zygote_ready_ && !zygote_was_ready_) {
    state_.use_zygote = false;
    console_->Say("muster: " + WhyNoZygote(zygote));
  }
  // In other phases its workers are about to fail or to be stopped: the next start sees to it.
  if (state_.phase == Phase::kRunning || start_) EnsureZygote();
  StartWhenWritten();
}

/// Of one that never was ready: its last line says the most.
std::string RunLoop::WhyNoZygote(const shim::Zygote& zygote) const {
  const auto log = folder_.files().ReadAll(folder_.At("logs/zygote.log"), kZygoteLog);
  const std::string words = log ? ExceptionLine(*log) : "";
  std::string how = fmt::format("ended with exit code {}", zygote.status);
  if (zygote.status < 0) how = "was killed by " + os::SignalName(-zygote.status);
  if (zygote.error != 0) how = fmt::format("could not be started: {}", std::strerror(zygote.error));
  return fmt::format("the fork server {} before it had loaded {}{}{}; {}", how, What(options_),
                     words.empty() ? "" : ": ", words, kExecuted);
}

}  // namespace muster::agent

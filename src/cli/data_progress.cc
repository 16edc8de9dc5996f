#include "cli/data_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/bytes.h"

namespace muster::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::size_t kBarWidth = 24;
constexpr std::string_view kClear = "\r\x1b[K";

std::string FormatEta(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, 359'999.0));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string SizeText(double bytes) { return FormatBytes({std::llround(bytes)}); }

}  // namespace

ProgressLine::ProgressLine(const Clock& clock, Options options)
    : clock_(clock), options_(std::move(options)), started_(clock.Now()) {}

ProgressLine::~ProgressLine() {
  if (visible_) options_.draw(kClear);
}

void ProgressLine::Update(std::uint64_t done, std::uint64_t all, std::uint64_t bytes) {
  if (!options_.enabled) return;
  const Instant now = clock_.Now();
  if (visible_ && now - drawn_ < kRedraw && done < all) return;
  drawn_ = now;
  visible_ = true;
  const double seconds = std::max(std::chrono::duration<double>(now - started_).count(), 1e-3);
  const double part = all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
  const double rate = static_cast<double>(done) / seconds;
  const auto filled = static_cast<std::size_t>(part * kBarWidth);
  const std::string eta =
      rate > 0 ? FormatEta(static_cast<double>(all - done) / rate) : std::string("-:--");
  const std::string speed = SizeText(static_cast<double>(bytes) / seconds) + "/s";
  const std::string counts =
      options_.unit.empty() ? fmt::format("{} of {}", SizeText(static_cast<double>(done)),
                                          SizeText(static_cast<double>(all)))
                            : fmt::format("{}/{} {}  {:.0f}/s", done, all, options_.unit, rate);
  options_.draw(fmt::format("{}[{:=<{}}{:<{}}] {:3.0f} %  {}  {}  ETA {}", kClear, "", filled, "",
                            kBarWidth - filled, part * 100, counts, speed, eta));
}

ProgressLine::Options StderrProgress() {
  return {.enabled = ::isatty(STDERR_FILENO) == 1, .draw = [](std::string_view text) {
            std::fwrite(text.data(), 1, text.size(), stderr);
            std::fflush(stderr);
          }};
}

}  // namespace muster::cli

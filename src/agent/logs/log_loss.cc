#include "agent/logs/log_loss.h"

#include <fmt/format.h>

#include "base/bytes.h"

namespace muster::agent {
namespace {

constexpr std::size_t kMostSentences = 4;

std::string Sentence(Rank rank, Stream stream, WhyLost why, std::uint64_t count) {
  const std::string bytes = FormatBytes({static_cast<std::int64_t>(count)});
  const std::string what =
      fmt::format("{} of what rank {} wrote to its {}", bytes, rank.value(), NameOf(stream));
  switch (why) {
    case WhyLost::kTooFast:
      return what + " came faster than it could be kept, and was dropped";
    case WhyLost::kNoRoom:
      return "the disk had no room for " + what;
    case WhyLost::kFailed:
      return "the disk did not take " + what;
  }
  return what;
}

}  // namespace

std::string_view NameOf(WhyLost why) {
  switch (why) {
    case WhyLost::kTooFast:
      return "too fast";
    case WhyLost::kNoRoom:
      return "no room";
    case WhyLost::kFailed:
      return "failed";
  }
  return "failed";
}

void LossTotals::Add(const LogLoss& loss) {
  bytes_[{loss.id.rank, loss.id.stream, loss.why}] += loss.bytes;
}

std::vector<std::string> LossTotals::InWords() const {
  std::vector<std::string> words;
  std::uint64_t others = 0;
  for (const auto& [key, count] : bytes_) {
    const auto& [rank, stream, why] = key;
    if (words.size() < kMostSentences) {
      words.push_back(Sentence(rank, stream, why, count));
    } else {
      others += count;
    }
  }
  if (others > 0) {
    words.push_back(fmt::format("{} of what other ranks wrote could not be kept either",
                                FormatBytes({static_cast<std::int64_t>(others)})));
  }
  return words;
}

}  // namespace muster::agent

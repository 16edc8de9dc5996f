// Plays histories, one seed after another, and stops at the first that breaks an invariant.
//
//   coordinator_simulation [--histories 1000] [--first 1] [--agents 0] [--large 2] [--seconds 0]
//                          [--show]
//
// --agents: of each; 0: drawn. --large: so many more with 2,000 agents. --seconds: no new history
// after so long, 0: no limit. --show: the story of each on stderr. 0: all held. 1: one did not; its
// seed, plan, last events and what the coordinator said are on stderr.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "agent/simulation/history.h"
#include "base/clock.h"

namespace {

using muster::agent::simulation::HistoryOptions;
using muster::agent::simulation::HistoryResult;

constexpr std::uint32_t kLarge = 2000;

/// For who aborts: a broken check must name its seed too.
std::array<char, 64> current_seed{};

void TellSeed(int number) {
  [[maybe_unused]] const auto n = ::write(2, current_seed.data(), std::strlen(current_seed.data()));
  std::signal(number, SIG_DFL);
  std::raise(number);
}

struct Options {
  std::uint64_t histories = 1000, first = 1, agents = 0, large = 2, seconds = 0;
  bool show = false;
};

Options Parse(int count, char** words) {
  Options options;
  const std::map<std::string, std::uint64_t*> numbers = {{"--histories", &options.histories},
                                                         {"--first", &options.first},
                                                         {"--agents", &options.agents},
                                                         {"--large", &options.large},
                                                         {"--seconds", &options.seconds}};
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto number = numbers.find(word);
    if (word == "--show") {
      options.show = true;
    } else if (number != numbers.end() && i + 1 < count) {
      const std::string_view value = words[++i];
      std::from_chars(value.data(), value.data() + value.size(), *number->second);
    } else {
      std::fprintf(stderr, "coordinator_simulation: what is %s?\n", word.c_str());
      std::exit(2);
    }
  }
  return options;
}

class Show {
 public:
  explicit Show(const Options& options, std::string folder)
      : options_(options), folder_(std::move(folder)) {}

  bool Play(std::uint64_t seed, std::uint32_t agents) {
    const auto text = fmt::format(
        "coordinator_simulation: in the history of --first {} --agents {}\n", seed, agents);
    text.copy(current_seed.data(), current_seed.size() - 1);
    const HistoryResult result =
        muster::agent::simulation::Play({.seed = seed, .agents = agents, .folder = folder_});
    ++played_;
    generations_ += result.generations;
    virtual_seconds_ += result.virtual_seconds;
    ++ends_[result.end.substr(0, result.end.find(':'))];
    digest_ = digest_ * 31 + result.digest;
    if (options_.show || result.violation) {
      std::fprintf(stderr, "%s\n%s\n%s%s\n", result.plan.c_str(), result.story.c_str(),
                   result.said.c_str(), result.end.c_str());
    }
    if (!result.violation) return true;
    std::fprintf(stderr,
                 "FAILED: %s\nagain: coordinator_simulation --first %llu --agents %u "
                 "--histories 1 --large 0\n",
                 result.violation->c_str(), static_cast<unsigned long long>(seed), agents);
    return false;
  }
  void Tell() const {
    std::string ends;
    for (const auto& [code, count] : ends_) ends += fmt::format(" {}: {}", code, count);
    fmt::print(
        "{} histories held: {} generations in {:.0f} virtual hours; ends by exit code:{}; "
        "digest {:016x}\n",
        played_, generations_, virtual_seconds_ / 3600, ends, digest_);
  }

 private:
  const Options options_;
  const std::string folder_;
  std::uint64_t played_ = 0, generations_ = 0, digest_ = 0;
  double virtual_seconds_ = 0;
  std::map<std::string, std::uint64_t> ends_;
};

bool PlayAll(const Options& options, Show& show) {
  const muster::Instant begin = muster::MonotonicClock::now();
  const auto over = [&] {
    return options.seconds > 0 &&
           muster::MonotonicClock::now() - begin > std::chrono::seconds(options.seconds);
  };
  for (std::uint64_t i = 0; i < options.large; ++i) {
    if (!show.Play(options.first + i, kLarge)) return false;
  }
  for (std::uint64_t i = 0; i < options.histories && !over(); ++i) {
    if (!show.Play(options.first + i, static_cast<std::uint32_t>(options.agents))) return false;
  }
  return true;
}

}  // namespace

int main(int count, char** words) {
  const Options options = Parse(count, words);
  for (const int number : {SIGABRT, SIGSEGV}) std::signal(number, TellSeed);
  std::string folder =
      (std::filesystem::temp_directory_path() / "muster-simulation-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    std::perror("coordinator_simulation: a temporary folder");
    return 1;
  }
  Show show(options, folder);
  const bool held = PlayAll(options, show);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (held) show.Tell();
  return held ? 0 : 1;
}

#include "spec/torchrun/line.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/near_miss.h"

namespace muster::spec::torchrun {
namespace {

constexpr std::string_view kHint = "run 'muster help run' for the options";

bool IsOption(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

/// As argparse has it: a number below zero and a text with blanks are no options.
bool CanBeValue(std::string_view word) {
  if (!IsOption(word) || word.find(' ') != std::string_view::npos) return true;
  return word.find_first_not_of("0123456789.", 1) == std::string_view::npos;
}

/// One pass over the words.
class Splitter {
 public:
  Splitter(std::span<const std::string> words, std::span<const OwnOption> own)
      : words_(words), own_(own) {}

  Result<RunLine> Split() {
    while (at_ < words_.size() && !ended_) {
      const std::string& word = words_[at_++];
      if (word == "--") {
        MUSTER_TRY(End(RunLine::Form::kCommand, at_));
      } else if (word.starts_with("--")) {
        MUSTER_TRY(Long(word));
      } else if (IsOption(word)) {
        MUSTER_TRY(Letters(word));
      } else {
        MUSTER_TRY(Positional(word));
      }
    }
    return std::move(line_);
  }

 private:
  const OwnOption* FindOwn(std::string_view name) const {
    const auto found = std::ranges::find(own_, name, &OwnOption::name);
    return found == own_.end() ? nullptr : &*found;
  }

  Status End(RunLine::Form form, std::size_t first) {
    ended_ = true;
    const auto rest = words_.subspan(first);
    if (line_.form == RunLine::Form::kJobFile) {
      if (rest.empty()) return Ok();
      return Unexpected(rest.front());
    }
    line_.words.assign(rest.begin(), rest.end());
    if (!rest.empty()) line_.form = form;
    return Ok();
  }

  Error Unexpected(const std::string& word) const {
    return {
        Code::kInvalid,
        fmt::format("unexpected argument '{}' behind the job file {}", word, line_.words.front()),
        std::string(kHint)};
  }

  Status Positional(const std::string& word) {
    if (line_.form == RunLine::Form::kJobFile) return Unexpected(word);
    const bool file = !line_.Has("module") && !line_.Has("no-python") && !line_.Has("run-path");
    if (!file || !IsJobFileName(word)) return End(RunLine::Form::kScript, at_ - 1);
    line_.form = RunLine::Form::kJobFile;
    line_.words = {word};
    return Ok();
  }

  Status Long(const std::string& word) {
    const auto equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const OwnOption* option = name.size() > 1 ? FindOwn(name) : nullptr;
    if (option != nullptr) {
      line_.own.push_back(word);
      if (option->takes_value && equals == std::string::npos && at_ < words_.size())
        line_.own.push_back(words_[at_++]);
      return Ok();
    }
    const Flag* flag = MUSTER_TRY(FindFlag(name));
    if (flag == nullptr) return Unknown("--" + name, name);
    if (flag->kind != Flag::Kind::kSwitch) {
      if (equals == std::string::npos) return TakeNext(*flag);
      line_.flags.push_back({flag, word.substr(equals + 1)});
      return Ok();
    }
    if (equals != std::string::npos) return TakesNoValue(*flag);
    line_.flags.push_back({flag, ""});
    return Ok();
  }

  static Error TakesNoValue(const Flag& flag) {
    return {Code::kInvalid, fmt::format("--{} takes no value", flag.name), std::string(kHint)};
  }

  Status TakeNext(const Flag& flag) {
    if (at_ == words_.size() || !CanBeValue(words_[at_])) {
      return Error(Code::kInvalid, fmt::format("--{} needs a value", flag.name),
                   std::string(kHint));
    }
    line_.flags.push_back({&flag, words_[at_++]});
    return Ok();
  }

  /// -r 3, -r3, -r=3, -mr3; -n2 and -n=2 of our own.
  Status Letters(const std::string& word) {
    // -n is ours: without this, -nproc-per-node would be a number that is none.
    const auto long_name = FindFlag(word.size() > 2 ? word.substr(1) : "");
    if (long_name && *long_name != nullptr && (*long_name)->name.size() + 1 == word.size())
      return Unknown(word, word.substr(1));
    for (std::size_t i = 1; i < word.size(); ++i) {
      if (const OwnOption* option = FindOwn(word.substr(i, 1)); option != nullptr) {
        if (!option->takes_value) {
          const bool joined = word.find('=', i) == i + 1;
          line_.own.push_back("-" + word.substr(i, joined ? std::string::npos : 1));
          if (joined) return Ok();  // which is refused with our own options
          continue;
        }
        line_.own.push_back("-" + word.substr(i));
        if (i + 1 == word.size() && at_ < words_.size()) line_.own.push_back(words_[at_++]);
        return Ok();
      }
      const Flag* flag = FindLetter(word[i]);
      if (flag == nullptr) return Unknown(word, word.substr(1));
      if (flag->kind == Flag::Kind::kSwitch) {
        if (word.find('=', i) == i + 1) return TakesNoValue(*flag);
        line_.flags.push_back({flag, ""});
        continue;
      }
      if (i + 1 == word.size()) return TakeNext(*flag);
      line_.flags.push_back({flag, word.substr(word[i + 1] == '=' ? i + 2 : i + 1)});
      return Ok();
    }
    return Ok();
  }

  Error Unknown(const std::string& shown, const std::string& name) const {
    std::vector<std::string_view> known;
    for (const OwnOption& option : own_) {
      if (option.name.size() > 1) known.push_back(option.name);
    }
    for (const Flag& flag : Flags()) known.push_back(flag.name);
    std::string dashes = name.substr(0, name.find('='));
    std::ranges::replace(dashes, '_', '-');
    const auto meant = NearMiss(dashes, known);
    return {Code::kInvalid,
            fmt::format("unknown option {}{}", shown.substr(0, shown.find('=')),
                        meant ? fmt::format(": did you mean --{}?", *meant) : ""),
            std::string(kHint)};
  }

  std::span<const std::string> words_;
  std::span<const OwnOption> own_;
  std::size_t at_ = 0;
  bool ended_ = false;
  RunLine line_;
};

}  // namespace

const std::string* RunLine::Value(std::string_view name) const {
  for (const GivenFlag& given : std::views::reverse(flags)) {
    if (given.flag->name == name) return &given.value;
  }
  return nullptr;
}

bool IsJobFileName(std::string_view word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
}

Result<RunLine> SplitRunLine(std::span<const std::string> words, std::span<const OwnOption> own) {
  return Splitter(words, own).Split();
}

}  // namespace muster::spec::torchrun

#include "spec/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "base/near_miss.h"
#include "base/text.h"
#include "spec/help_text.h"

namespace muster::spec {
namespace {

/// A program may be long; its positional takes words without end.
constexpr int kEndless = 1 << 20;

std::vector<std::string> SubcommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& known,
                       const auto& shown) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const auto meant = NearMiss(word, views);
  return meant ? fmt::format(": did you mean {}?", shown(*meant)) : "";
}

/// Where the words lead: the innermost subcommand, and the words behind it.
struct Place {
  CLI::App* app;
  std::vector<std::string> names;  ///< "data", "pack"; empty at the top
  std::vector<std::string> rest;   ///< options on the way, then all from words[below] on
  std::size_t below = 0;
  bool help = false;
};

/// `begin` and what follows it, a blank between each.
std::string Joined(std::string begin, const std::vector<std::string>& words) {
  for (const std::string& word : words) begin += (begin.empty() ? "" : " ") + word;
  return begin;
}

bool IsOption(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  return names;
}

std::string MeantOption(std::string_view word, const CLI::App& app) {
  return DidYouMean(word, OptionsOf(app),
                    [](std::string_view known) { return fmt::format("--{}", known); });
}

bool HasOption(const CLI::App& app, std::string_view word) {
  const bool is_long = word.starts_with("--");
  const std::string name(is_long ? word.substr(2, word.find('=') - 2) : word.substr(1));
  return std::ranges::any_of(app.get_options(), [&](const CLI::Option* option) {
    return is_long ? option->check_lname(name) : option->check_sname(name);
  });
}

Error UnknownSubcommand(const Place& at, const std::string& program, const std::string& word,
                        std::string_view kind) {
  const auto known = SubcommandsOf(*at.app);
  const auto below = [&](const std::string& name) {
    std::vector<std::string> names = at.names;
    names.push_back(name);
    return Joined("", names);
  };
  std::string meant = DidYouMean(word, known, [&](std::string_view name) {
    return fmt::format("'{}'", below(std::string(name)));
  });
  if (meant.empty()) meant = MeantOption(word, *at.app);  // "version"
  const std::string hint =
      meant.empty()
          ? fmt::format("{} has {}", Joined(program, at.names), fmt::join(known, ", "))
          : fmt::format("run '{}' for the {}s", Joined(program + " help", at.names), kind);
  return {Code::kInvalid, fmt::format("unknown {} '{}'{}", kind, below(word), meant), hint};
}

/// An option in front of a subcommand, where it is none of the app above.
Error Misplaced(const Place& at, const std::string& program, std::string_view kind,
                const std::string& word) {
  const std::string shown = word.substr(0, word.find('='));
  return {Code::kInvalid,
          fmt::format("unknown option {} in front of the {}{}", shown, kind,
                      MeantOption(shown.substr(shown.find_first_not_of('-')), *at.app)),
          fmt::format("options of a {0} stand behind its name; run '{1}' for the {0}s", kind,
                      Joined(program + " help", at.names))};
}

/// Follows the words down to the innermost subcommand; options on the way stay in `rest`.
Result<Place> Descend(CLI::App& root, const std::vector<std::string>& words,
                      std::string_view kind) {
  Place at{.app = &root};
  std::optional<std::string> stray;
  std::size_t i = 0;
  for (; i < words.size() && !SubcommandsOf(*at.app).empty() && words[i] != "--"; ++i) {
    if (IsOption(words[i])) {
      if (!stray && !HasOption(*at.app, words[i])) stray = words[i];
      at.rest.push_back(words[i]);
      continue;
    }
    if (stray) return Misplaced(at, root.get_name(), kind, *stray);
    if (words[i] == "help") {
      at.help = true;
      continue;
    }
    const auto known = SubcommandsOf(*at.app);
    if (std::ranges::find(known, words[i]) == known.end())
      return UnknownSubcommand(at, root.get_name(), words[i], kind);
    at.app = at.app->get_subcommand(words[i]);
    at.names.push_back(words[i]);
  }
  at.below = i;
  at.rest.insert(at.rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return at;
}

/// What one pass over the words of the innermost subcommand finds.
class Scan {
 public:
  Scan(const CLI::App& app, std::string program, const std::string& help_command)
      : app_(app),
        program_(std::move(program)),
        hint_("run '" + help_command + "' for the options") {
    for (const CLI::Option* option : app.get_options()) {
      if (!option->get_positional()) continue;
      capacity_ += std::min(option->get_items_expected_max(), kEndless);
      takes_command_ = takes_command_ || option->get_name().find("CMD") != std::string::npos;
    }
  }

  /// Takes no arguments: what is asked for is help.
  void ForHelp() { capacity_ = 0; }

  /// Writes -o=x, which CLI11 does not know, as -ox.
  void Read(std::vector<std::string>& words) {
    bool plain = false;  // behind "--"
    for (auto word = words.begin(); word != words.end(); ++word) {
      if (plain || !IsOption(*word)) {
        if (++arguments_ > capacity_) Fail(fmt::format("unexpected argument '{}'", *word));
      } else if (*word == "--") {
        plain = true;
      } else {
        word = ReadOption(word, words.end());
      }
    }
    RequireArguments();
  }

  bool help() const { return help_; }
  int arguments() const { return arguments_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  using Iterator = std::vector<std::string>::iterator;

  void Fail(std::string message) { FailWith(std::move(message), hint_); }
  void FailWith(std::string message, std::string hint) {
    if (!error_) error_.emplace(Code::kInvalid, std::move(message), std::move(hint));
  }

  const CLI::Option* Find(const std::string& name, bool is_long) const {
    for (const CLI::Option* option : app_.get_options()) {
      if (is_long ? option->check_lname(name) : option->check_sname(name)) return option;
    }
    return nullptr;
  }

  /// Returns the last word that belongs to the option.
  Iterator ReadOption(Iterator word, Iterator end) {
    const bool is_long = word->starts_with("--");
    const bool joined = is_long ? word->find('=') != std::string::npos : word->find('=') == 2;
    const auto equals = joined ? word->find('=') : std::string::npos;
    const std::string name = is_long ? word->substr(2, equals - 2) : word->substr(1, 1);
    const CLI::Option* option = Find(name, is_long);
    if (option == nullptr) {
      Unknown(*word, is_long ? name : word->substr(1));
      return word;
    }
    help_ = help_ || (option == app_.get_help_ptr() && !joined);
    if (option->get_items_expected_max() == 0) {  // a flag
      if (joined) Fail(fmt::format("{} takes no value", option->get_name()));
      return word;
    }
    if (++given_[option] > 1 && option->get_items_expected_max() == 1) {
      Fail(fmt::format("{} is given twice", option->get_name()));
    }
    std::optional<std::string> value;
    if (joined) {
      if (equals + 1 < word->size()) value = word->substr(equals + 1);
      if (!is_long) word->erase(equals, 1);
    } else if (!is_long && word->size() > 2) {
      value = word->substr(2);
    } else if (word + 1 != end) {
      value = *++word;
    }
    if (value) {
      Check(*option, *value);
    } else {
      Fail(fmt::format("{} needs a value", option->get_name()));
    }
    return word;
  }

  void Unknown(const std::string& word, const std::string& name) {
    const std::string shown = word.substr(0, word.find('='));
    if (takes_command_ && arguments_ > 0) {
      return FailWith(
          fmt::format("{} takes no option {} behind the command", program_, shown),
          fmt::format("put -- before a command with options of its own: {} -- …", program_));
    }
    Fail(fmt::format("unknown option {}{}", shown,
                     MeantOption(name.substr(0, name.find('=')), app_)));
  }

  void Check(const CLI::Option& option, const std::string& value) {
    const std::string type = option.get_type_name();
    const bool whole = type.starts_with("UINT") || type.starts_with("INT");
    if (whole) {
      const bool minus = type.starts_with("INT") && value.starts_with('-');
      const char* end = value.data() + value.size();
      std::uint64_t number = 0;
      const auto [stop, error] = std::from_chars(value.data() + (minus ? 1 : 0), end, number);
      if (error == std::errc::result_out_of_range && stop == end)
        return Fail(fmt::format("{} is {}, which is too large", option.get_name(), value));
      if (error != std::errc() || stop != end)
        Fail(fmt::format("{} takes a whole number, not '{}'", option.get_name(), value));
    } else if (type.starts_with("FLOAT")) {
      char* stop = nullptr;
      [[maybe_unused]] const double number = std::strtod(value.c_str(), &stop);
      if (value.empty() || *stop != '\0')
        Fail(fmt::format("{} takes a number, not '{}'", option.get_name(), value));
    }
  }

  void RequireArguments() {
    std::vector<std::string> missing;
    int place = 0;
    for (const CLI::Option* option : app_.get_options()) {
      if (!option->get_positional()) continue;
      place += option->get_items_expected_min();
      if (option->get_required() && arguments_ < place) missing.push_back(option->get_name());
    }
    if (!missing.empty()) Fail(fmt::format("{} needs {}", program_, fmt::join(missing, " and ")));
  }

  const CLI::App& app_;
  std::string program_;
  std::string hint_;
  int capacity_ = 0;
  int arguments_ = 0;
  bool takes_command_ = false;
  std::map<const CLI::Option*, int> given_;
  bool help_ = false;
  std::optional<Error> error_;
};

/// CLI11's own words, for what the scan leaves to it.
Error FromCli(const CLI::ParseError& error, const std::string& hint) {
  std::string message = error.what();
  // "--threads: takes …", of option_values.h.
  const auto colon = message.find(": ");
  const bool of_value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr;
  if (of_value && colon != std::string::npos) message.erase(colon, 1);
  constexpr std::string_view kConvert = "Could not convert: ";
  const auto equals = message.find(" = ");
  if (message.starts_with(kConvert) && equals != std::string::npos) {
    message = fmt::format("{} is {}, which is out of range",
                          message.substr(kConvert.size(), equals - kConvert.size()),
                          message.substr(equals + 3));
  }
  return {Code::kInvalid, message, hint};
}

}  // namespace

Result<std::optional<std::string>> ParseCommandLine(CLI::App& app,
                                                    const std::vector<std::string>& words,
                                                    std::string_view kind) {
  Place at = MUSTER_TRY(Descend(app, words, kind));
  const std::string full = Joined(app.get_name(), at.names);
  const std::string help_command = Joined(app.get_name() + " help", at.names);
  Scan scan(*at.app, full, help_command);
  if (at.help) scan.ForHelp();
  const std::size_t on_the_way = at.rest.size() - (words.size() - at.below);
  scan.Read(at.rest);
  if (at.help && scan.arguments() > 0) return *scan.error();
  if (at.help || scan.help()) {
    return std::optional(HelpText(*at.app, full, {.kind = kind, .width = HelpWidth()}));
  }
  if (scan.error()) return *scan.error();
  if (const auto subs = SubcommandsOf(*at.app); !subs.empty()) {
    return Error(Code::kInvalid, fmt::format("{} needs a {}", full, kind),
                 fmt::format("one of {}; '{}' explains them", fmt::join(subs, ", "), help_command));
  }
  try {
    std::vector<std::string> read(words.begin(),
                                  words.begin() + static_cast<std::ptrdiff_t>(at.below));
    read.insert(read.end(), at.rest.begin() + static_cast<std::ptrdiff_t>(on_the_way),
                at.rest.end());
    // CLI11 takes the words from the back.
    app.parse(std::vector<std::string>(read.rbegin(), read.rend()));
  } catch (const CLI::ParseError& error) {
    return FromCli(error, fmt::format("run '{}' for the options", help_command));
  }
  return std::optional<std::string>();
}

bool AsksForVersion(const std::vector<std::string>& words) {
  const auto verb =
      std::ranges::find_if(words, [](const auto& word) { return !word.starts_with('-'); });
  return std::find(words.begin(), verb, "--version") != verb;
}

}  // namespace muster::spec

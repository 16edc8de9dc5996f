#pragma once
// The words behind `muster run`, taken apart as torchrun's argparse would: its flags, our own
// options, and what is to be run. The first word that is no option is a job file, by the end of its
// name, or a script with its arguments; behind "--" stands a command. Pure.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/torchrun/flags.h"

namespace muster::spec::torchrun {

/// An option of `muster run` itself.
struct OwnOption {
  std::string name;  ///< "run-dir", or a letter: "n"
  bool takes_value = false;
};

struct GivenFlag {
  const Flag* flag = nullptr;
  std::string value;  ///< empty for a switch
};

struct RunLine {
  enum class Form {
    kNothing,
    kJobFile,  ///< one word; options may stand behind it
    kScript,   ///< a script, or a module, and its arguments
    kCommand,  ///< what stands behind "--": a program and its arguments
  };
  std::vector<std::string> own;  ///< words of our own options, as typed
  std::vector<GivenFlag> flags;  ///< in the order typed; the last of a flag holds
  Form form = Form::kNothing;
  std::vector<std::string> words;

  /// The last value given for a flag; null when it was not given.
  const std::string* Value(std::string_view name) const;
  bool Has(std::string_view name) const { return Value(name) != nullptr; }
};

/// *.yaml, *.yml and *.json are job files, whatever is in them: no script is called so.
bool IsJobFileName(std::string_view word);

/// Invalid names an unknown option and what was meant, an option without its value, a prefix of
/// several flags.
Result<RunLine> SplitRunLine(std::span<const std::string> words, std::span<const OwnOption> own);

}  // namespace muster::spec::torchrun

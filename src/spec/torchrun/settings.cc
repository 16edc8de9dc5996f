#include "spec/torchrun/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

namespace muster::spec::torchrun {
namespace {

constexpr std::string_view kHint =
    "docs/guide/from-torchrun.md explains each flag; nothing was made";

/// A whole number in all of the text.
std::optional<std::int64_t> Whole(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

bool IsReal(const std::string& text) {
  char* stop = nullptr;
  const double number = std::strtod(text.c_str(), &stop);
  return !text.empty() && *stop == '\0' && std::isfinite(number);
}

bool IsChoice(std::string_view value, std::string_view choices) {
  while (!choices.empty()) {
    const auto space = std::min(choices.find(' '), choices.size());
    if (choices.substr(0, space) == value) return true;
    choices.remove_prefix(std::min(space + 1, choices.size()));
  }
  return false;
}

/// A value and what the user called it.
struct Asked {
  std::string by;  ///< "--role", "PET_ROLE"
  std::string value;
};

Error Refuse(const Asked& asked, std::string_view takes) {
  return {Code::kInvalid, fmt::format("{} takes {}, not '{}'", asked.by, takes, asked.value),
          std::string(kHint)};
}

/// Flags, else variables, by name.
class Reader {
 public:
  Reader(const RunLine& line, const EnvLookup& lookup)
      : line_(&line), lookup_(&lookup), variables_(line.form != RunLine::Form::kJobFile) {}

  std::optional<Asked> Find(const Flag& flag) const {
    const std::string* value = line_->Value(flag.name);
    if (value != nullptr) return Asked{fmt::format("--{}", flag.name), *value};
    const std::string variable = VariableOf(flag);
    if (variable.empty()) return std::nullopt;
    auto from = Variable(variable);
    if (!from) return std::nullopt;
    return Asked{variable, std::move(*from)};
  }
  std::optional<Asked> Find(std::string_view name) const {
    const auto flags = Flags();
    return Find(*std::ranges::find(flags, name, &Flag::name));
  }
  /// A switch: its flag, or a variable that is a number but 0.
  bool On(std::string_view name) const {
    const auto asked = Find(name);
    return asked && (asked->by[0] == '-' || Whole(asked->value).value_or(0) != 0);
  }
  std::optional<std::string> Variable(const std::string& name) const {
    return variables_ ? (*lookup_)(name) : std::nullopt;
  }

 private:
  const RunLine* line_;
  const EnvLookup* lookup_;
  bool variables_;
};

/// Every value is of its kind, whether it has a meaning or not.
Status CheckKinds(const Reader& in, bool* used) {
  for (const Flag& flag : Flags()) {
    const auto asked = in.Find(flag);
    if (!asked) continue;
    *used = true;
    const bool from_variable = asked->by[0] != '-';
    const bool whole = Whole(asked->value).has_value();
    if (flag.kind == Flag::Kind::kSwitch && from_variable && !whole)
      return Refuse(*asked, "0 or 1");
    if (flag.kind == Flag::Kind::kWhole && !whole) return Refuse(*asked, "a whole number");
    if (flag.kind == Flag::Kind::kReal && !IsReal(asked->value)) return Refuse(*asked, "a number");
    if (!flag.choices.empty() && !IsChoice(asked->value, flag.choices))
      return Refuse(*asked, fmt::format("one of {}", flag.choices));
  }
  return Ok();
}

/// What is said once about things without a meaning: names by their reason.
class Ignored {
 public:
  void Add(std::string name, std::string_view why) {
    for (auto& [reason, names] : entries_) {
      if (reason == why) return names.push_back(std::move(name));
    }
    entries_.emplace_back(why, std::vector<std::string>{std::move(name)});
  }
  std::string Text() const {
    std::string text;
    for (const auto& [why, names] : entries_) {
      text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", fmt::join(names, ", "), why);
    }
    return text;
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> entries_;
};

Status ReadNodes(const Reader& in, Settings* settings) {
  const auto asked = in.Find("nnodes");
  if (!asked) return Ok();
  const std::string_view text = asked->value;
  const auto colon = text.find(':');
  const auto least = Whole(text.substr(0, colon));
  const auto most = colon == std::string_view::npos ? least : Whole(text.substr(colon + 1));
  constexpr std::int64_t kMostNodes = 100'000;
  if (!least || !most || *least < 1 || *most < *least || *most > kMostNodes)
    return Refuse(*asked, "a number of nodes or MIN:MAX");
  settings->nodes =
      NodeRange{static_cast<std::uint32_t>(*least), static_cast<std::uint32_t>(*most)};
  const auto number = in.Find("node-rank");
  if (*most > 1 && number && number->value != "0") {
    return Error(Code::kPrecondition,
                 fmt::format("{} is {}, and only the first host of several runs muster run",
                             number->by, number->value),
                 "on this one type the line 'muster agent --join …' that it prints; nothing was "
                 "started");
  }
  return Ok();
}

Status ReadRanks(const Reader& in, Settings* settings) {
  const auto asked = in.Find("nproc-per-node");
  if (!asked) return Ok();
  const std::string& value = asked->value;
  using Kind = RanksPerNode::Kind;
  if (value == "xpu") {
    return Error(Code::kPrecondition,
                 fmt::format("{} is xpu; muster run counts no XPUs", asked->by),
                 "give their number; nothing was started");
  }
  if (value == "auto") settings->ranks = RanksPerNode{Kind::kAuto, 1};
  if (value == "cpu") settings->ranks = RanksPerNode{Kind::kCpu, 1};
  if (value == "gpu") settings->ranks = RanksPerNode{Kind::kGpu, 1};
  if (settings->ranks) return Ok();
  const auto count = Whole(value);
  if (!count || *count < 1 || *count > std::numeric_limits<std::uint32_t>::max())
    return Refuse(*asked, "auto, cpu, gpu, xpu or a number above 0");
  settings->ranks = RanksPerNode{Kind::kCount, static_cast<std::uint32_t>(*count)};
  return Ok();
}

Status ReadCount(const std::optional<Asked>& asked, std::optional<std::uint32_t>* out) {
  if (!asked) return Ok();
  const auto number = Whole(asked->value);
  if (!number || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max())
    return Refuse(*asked, "a whole number from 0");
  *out = static_cast<std::uint32_t>(*number);
  return Ok();
}

Status ReadCounts(const Reader& in, Settings* settings) {
  MUSTER_TRY(ReadCount(in.Find("max-restarts"), &settings->max_restarts));
  auto shutdown = in.Find("shutdown-timeout");
  constexpr const char* kVariable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
  if (auto value = in.Variable(kVariable); value && !shutdown) {
    shutdown = Asked{kVariable, std::move(*value)};
  }
  return ReadCount(shutdown, &settings->shutdown_s);
}

Status ReadShown(const Reader& in, ShownStreams* shown) {
  for (auto [name, choice] :
       {std::pair("redirects", &shown->redirected), std::pair("tee", &shown->teed)}) {
    const auto asked = in.Find(name);
    if (!asked) continue;
    const auto parsed = ParseStreams(asked->value);
    if (!parsed) return Refuse(*asked, "0 to 3, or RANK:0 to RANK:3 with commas");
    *choice = *parsed;
  }
  if (const auto asked = in.Find("local-ranks-filter"); asked && !asked->value.empty()) {
    const auto parsed = ParseRanks(asked->value);
    if (!parsed) return Refuse(*asked, "ranks with commas");
    shown->only = *parsed;
  }
  return Ok();
}

/// --run-path wins over --no-python, as under torchrun; a command behind "--" needs neither.
Status ReadRunner(const RunLine& line, const Reader& in, Settings* settings) {
  const bool script = line.form == RunLine::Form::kScript;
  if (script ? in.On("run-path") : line.Has("run-path")) return Ok();
  const bool module = script ? in.On("module") : line.Has("module");
  const bool program = script ? in.On("no-python") : !module || line.Has("no-python");
  if (program && module) {
    return Error(Code::kInvalid, "--no-python and --module contradict each other",
                 std::string(kHint));
  }
  if (program) settings->runner = Runner::kProgram;
  if (module) settings->runner = Runner::kModule;
  return Ok();
}

void ReadTexts(const Reader& in, Settings* settings, Ignored* ignored) {
  if (auto role = in.Find("role")) settings->role = role->value;
  // A rendezvous of torchrun's own (--standalone) makes an id of its own.
  const auto id = in.Find("rdzv-id");
  if (id && !in.On("standalone") && id->value != "none") settings->run_id = id->value;
  if (auto folder = in.Find("log-dir")) {
    if (folder->value == "/dev/null") {
      ignored->Add(folder->by + " /dev/null", "the run folder holds more than logs");
    } else {
      settings->log_dir = folder->value;
    }
  }
  settings->virtual_local_rank = in.On("virtual-local-rank");
  settings->interpreter = in.Variable("PYTHON_EXEC").value_or("");
  settings->line_prefix = in.Variable("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE").value_or("");
}

void ReadIgnored(const Reader& in, Ignored* ignored) {
  for (const Flag& flag : Flags()) {
    const auto asked = in.Find(flag);
    if (flag.why.empty() || !asked) continue;
    ignored->Add(asked->by, flag.why);
  }
  constexpr std::string_view kTimer = "muster run has no timer server";
  if (in.Variable("TORCHELASTIC_ENABLE_FILE_TIMER").value_or("0") == "1") {
    ignored->Add("TORCHELASTIC_ENABLE_FILE_TIMER", kTimer);
    if (in.Variable("TORCHELASTIC_TIMER_FILE")) ignored->Add("TORCHELASTIC_TIMER_FILE", kTimer);
  }
  if (in.Variable("TORCHELASTIC_HEALTH_CHECK_PORT")) {
    ignored->Add("TORCHELASTIC_HEALTH_CHECK_PORT", "muster run has no health check server");
  }
}

}  // namespace

Result<Settings> ReadSettings(const RunLine& line, const EnvLookup& lookup) {
  const Reader in(line, lookup);
  Settings settings;
  Ignored ignored;
  MUSTER_TRY(CheckKinds(in, &settings.used));
  MUSTER_TRY(ReadNodes(in, &settings));
  MUSTER_TRY(ReadRanks(in, &settings));
  MUSTER_TRY(ReadCounts(in, &settings));
  MUSTER_TRY(ReadShown(in, &settings.shown));
  MUSTER_TRY(ReadRunner(line, in, &settings));
  ReadTexts(in, &settings, &ignored);
  ReadIgnored(in, &ignored);
  settings.ignored = ignored.Text();
  return settings;
}

std::string LinePrefix(std::string_view format, std::string_view role, std::uint32_t rank,
                       std::uint32_t local_rank) {
  const std::string number = std::to_string(rank);
  const std::string local = std::to_string(local_rank);
  const std::pair<std::string_view, std::string_view> names[] = {
      {"role_name", role}, {"local_rank", local}, {"rank", number}};
  std::string out;
  while (!format.empty()) {
    const bool braced = format.starts_with("${");
    std::string_view rest = format.substr(1);
    if (braced) rest.remove_prefix(1);
    const auto* found =
        format[0] != '$' ? std::end(names) : std::ranges::find_if(names, [&](const auto& name) {
          return rest.starts_with(name.first) &&
                 (!braced || rest.substr(name.first.size()).starts_with('}'));
        });
    if (found == std::end(names)) {
      if (format.starts_with("$$")) format.remove_prefix(1);
      out += format.front();
      format.remove_prefix(1);
      continue;
    }
    out += found->second;
    rest.remove_prefix(found->first.size() + (braced ? 1 : 0));
    format = rest;
  }
  return out;
}

}  // namespace muster::spec::torchrun

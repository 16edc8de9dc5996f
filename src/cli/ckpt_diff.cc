// muster ckpt diff A B: how far apart the tensors of two checkpoints are, the sum of it first. 1
// when they differ.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/text.h"
#include "cli/ckpt_open.h"
#include "cli/verb.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;
using checkpoint::Difference;
using checkpoint::TensorDifference;
using checkpoint::TensorName;

/// Listed without --all, of each kind.
constexpr std::size_t kShown = 10;

struct Arguments {
  std::string a;
  std::string b;
  std::string group{checkpoint::kAllGroups};
  bool all = false;
};

/// Those that differ, furthest first; a NaN is further than any number.
std::vector<TensorDifference> Unequal(const Difference& difference) {
  std::vector<TensorDifference> unequal;
  std::ranges::copy_if(difference.tensors, std::back_inserter(unequal),
                       [](const TensorDifference& tensor) { return tensor.unequal > 0; });
  const auto distance = [](const TensorDifference& tensor) {
    return std::isnan(tensor.max_abs) ? HUGE_VAL : tensor.max_abs;
  };
  std::ranges::sort(unequal, [&](const TensorDifference& a, const TensorDifference& b) {
    if (distance(a) != distance(b)) return distance(a) > distance(b);
    return std::tie(a.group, a.name) < std::tie(b.group, b.name);
  });
  return unequal;
}

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json ToJson(const TensorDifference& tensor) {
  return {{"group", tensor.group},
          {"name", tensor.name},
          {"elements", tensor.elements},
          {"unequal", tensor.unequal},
          {"max_abs", Number(tensor.max_abs)},
          {"max_at", tensor.max_at},
          {"max_ulp", tensor.max_ulp}};
}

/// What two checkpoints come to, and how much of it is listed.
struct Comparison {
  const Difference& difference;
  std::vector<TensorDifference> unequal;
  std::size_t most;
};

Json NamesJson(const Comparison& comparison, const std::vector<TensorName>& names) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(names.size(), comparison.most); ++i)
    list.push_back({{"group", names[i].group}, {"name", names[i].name}});
  return list;
}

Json ToJson(const Comparison& comparison) {
  const Difference& difference = comparison.difference;
  const auto& unequal = comparison.unequal;
  const std::size_t alike = difference.tensors.size();
  Json tensors = Json::array();
  for (std::size_t i = 0; i < std::min(unequal.size(), comparison.most); ++i)
    tensors.push_back(ToJson(unequal[i]));
  Json summary = {{"tensors", alike + difference.unlike.size() + difference.only_a.size() +
                                  difference.only_b.size()},
                  {"equal", alike - unequal.size()},
                  {"differ", unequal.size()},
                  {"other_shape", difference.unlike.size()},
                  {"only_a", difference.only_a.size()},
                  {"only_b", difference.only_b.size()},
                  {"largest", unequal.empty() ? Json(nullptr) : ToJson(unequal[0])}};
  const std::size_t left = unequal.size() - tensors.size();
  return {{"bitwise_equal", difference.BitwiseEqual()},
          {"summary", std::move(summary)},
          {"tensors", std::move(tensors)},
          {"left_out", left},
          {"other_shape", NamesJson(comparison, difference.unlike)},
          {"only_a", NamesJson(comparison, difference.only_a)},
          {"only_b", NamesJson(comparison, difference.only_b)}};
}

std::string Named(std::string_view group, std::string_view name) {
  return fmt::format("{} ({})", PlainLine(name), PlainLine(group));
}

std::string Summary(const Comparison& comparison) {
  const Difference& difference = comparison.difference;
  const std::size_t alike = difference.tensors.size();
  const std::size_t all =
      alike + difference.unlike.size() + difference.only_a.size() + difference.only_b.size();
  if (difference.BitwiseEqual()) return Counted(all, "tensor") + ", bitwise equal\n";
  std::string text =
      fmt::format("{}: {} equal, {} {}", Counted(all, "tensor"), alike - comparison.unequal.size(),
                  comparison.unequal.size(), comparison.unequal.size() == 1 ? "differs" : "differ");
  const auto add = [&](std::size_t count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  add(difference.unlike.size(), "of another dtype or shape");
  add(difference.only_a.size(), "only in A");
  add(difference.only_b.size(), "only in B");
  if (comparison.unequal.empty()) return text + "\n";
  const TensorDifference& largest = comparison.unequal[0];
  return text + fmt::format("\nlargest difference: {:.4g} at element {} of {}\n", largest.max_abs,
                            largest.max_at, Named(largest.group, largest.name));
}

std::string Table(const Comparison& comparison) {
  if (comparison.unequal.empty()) return "";
  std::string text =
      fmt::format("{:>12}  {:>12}  {:>22}  {}\n", "MAX ABS", "MAX ULP", "UNEQUAL", "TENSOR");
  for (std::size_t i = 0; i < std::min(comparison.unequal.size(), comparison.most); ++i) {
    const TensorDifference& tensor = comparison.unequal[i];
    text += fmt::format("{:>12.4g}  {:>12}  {:>22}  {}\n", tensor.max_abs, tensor.max_ulp,
                        fmt::format("{} of {}", tensor.unequal, tensor.elements),
                        Named(tensor.group, tensor.name));
  }
  if (comparison.unequal.size() > comparison.most)
    text += fmt::format("… and {} more that differ less; --all lists them\n",
                        comparison.unequal.size() - comparison.most);
  return text;
}

std::string Names(const Comparison& comparison, std::string_view what,
                  const std::vector<TensorName>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), comparison.most); ++i)
    text += fmt::format("{}: {}\n", what, Named(names[i].group, names[i].name));
  if (names.size() > comparison.most)
    text +=
        fmt::format("{}: … and {} more; --all lists them\n", what, names.size() - comparison.most);
  return text;
}

std::string ToText(const Comparison& comparison) {
  const Difference& difference = comparison.difference;
  return Summary(comparison) + Table(comparison) +
         Names(comparison, "of another dtype or shape", difference.unlike) +
         Names(comparison, "only in A", difference.only_a) +
         Names(comparison, "only in B", difference.only_b);
}

Result<int> Run(const Arguments& arguments, bool json) {
  checkpoint::Checkpoint a = MUSTER_TRY(OpenCheckpoint(arguments.a));
  checkpoint::Checkpoint b = MUSTER_TRY(OpenCheckpoint(arguments.b));
  const Difference difference = MUSTER_TRY(checkpoint::Diff(a, b, arguments.group));
  const Comparison comparison{.difference = difference,
                              .unequal = Unequal(difference),
                              .most = arguments.all ? SIZE_MAX : kShown};
  MUSTER_TRY(json ? PrintJson(ToJson(comparison)) : PrintText(ToText(comparison)));
  return difference.BitwiseEqual() ? 0 : 1;
}

}  // namespace

void AddCkptDiff(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "diff", "Measure how far apart two checkpoints are", invocation);
  const auto arguments = std::make_shared<Arguments>();
  app->add_option("A", arguments->a, "A checkpoint, or a folder whose newest is meant")->required();
  app->add_option("B", arguments->b, "Another one")->required();
  AddGroupOption(*app, arguments->group);
  app->add_flag("--all", arguments->all, "List every tensor that differs, not only the first ten");
  app->footer(
      "A and B are step-… folders, folders of checkpoints or run folders.\n"
      "The exit code is 0 when all is bitwise equal, 1 when something differs.");
  app->callback([&invocation, arguments] {
    invocation.action = [&invocation, arguments] { return Run(*arguments, invocation.json); };
  });
}

}  // namespace muster::cli

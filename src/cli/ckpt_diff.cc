// muster ckpt diff A B: how far apart the tensors of two checkpoints are. 1 when they differ.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/ckpt_open.h"
#include "cli/verb.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;
using checkpoint::TensorDifference;

struct Arguments {
  std::string a;
  std::string b;
  std::string only = "all";
};

Json ToJson(const std::vector<TensorDifference>& differences, bool equal) {
  Json rows = Json::array();
  for (const TensorDifference& tensor : differences) {
    Json row = {{"group", tensor.group},     {"name", tensor.name}, {"elements", tensor.elements},
                {"unequal", tensor.unequal}, {"max_abs", nullptr},  {"max_ulp", tensor.max_ulp}};
    if (std::isfinite(tensor.max_abs)) row["max_abs"] = tensor.max_abs;
    rows.push_back(std::move(row));
  }
  return {{"bitwise_equal", equal}, {"tensors", std::move(rows)}};
}

std::string ToText(const std::vector<TensorDifference>& differences, bool equal) {
  if (equal) return fmt::format("{} tensors, bitwise equal\n", differences.size());
  std::string text =
      fmt::format("{:>12}  {:>12}  {:>10}  {}\n", "MAX ABS", "MAX ULP", "UNEQUAL", "TENSOR");
  for (const TensorDifference& tensor : differences) {
    if (tensor.unequal == 0) continue;
    text += fmt::format("{:>12.4g}  {:>12}  {:>10}  {} ({}, {} elements)\n", tensor.max_abs,
                        tensor.max_ulp, tensor.unequal, PlainLine(tensor.name),
                        PlainLine(tensor.group), tensor.elements);
  }
  return text;
}

Result<int> Run(const Arguments& arguments, bool json) {
  const checkpoint::Scope scope = MUSTER_TRY(ParseScope(arguments.only));
  checkpoint::Checkpoint a = MUSTER_TRY(OpenCheckpoint(arguments.a));
  checkpoint::Checkpoint b = MUSTER_TRY(OpenCheckpoint(arguments.b));
  const auto differences = MUSTER_TRY(checkpoint::Diff(a, b, scope));
  bool equal = true;
  for (const TensorDifference& tensor : differences) equal = equal && tensor.unequal == 0;
  MUSTER_TRY(json ? PrintJson(ToJson(differences, equal)) : PrintText(ToText(differences, equal)));
  return equal ? 0 : 1;
}

}  // namespace

void AddCkptDiff(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "diff", "Measure how far apart two checkpoints are", invocation);
  const auto arguments = std::make_shared<Arguments>();
  app->add_option("A", arguments->a, "A checkpoint, or a folder whose newest is meant")->required();
  app->add_option("B", arguments->b, "Another one")->required();
  app->add_option("--only", arguments->only, "params, or all (optimizer state too)")
      ->capture_default_str();
  app->callback([&invocation, arguments] {
    invocation.action = [&invocation, arguments] { return Run(*arguments, invocation.json); };
  });
}

}  // namespace muster::cli

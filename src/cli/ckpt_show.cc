// muster ckpt show CKPT: what one checkpoint says about itself.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/ckpt_open.h"
#include "cli/verb.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;
using checkpoint::Manifest;

Json ToJson(const std::string& path, const Manifest& manifest) {
  Json groups = Json::array();
  for (const auto& group : manifest.index.groups)
    groups.push_back({{"name", group.name}, {"dtype", NameOf(group.dtype)}});
  Json tensors = Json::array();
  for (const auto& entry : manifest.index.entries)
    tensors.push_back({{"name", entry.name}, {"shape", entry.shape}, {"elements", entry.length}});
  Json files = Json::array();
  for (const auto& file : manifest.files)
    files.push_back({{"name", file.name}, {"bytes", file.header_bytes + file.data_bytes}});
  return {{"path", path},
          {"step", manifest.step},
          {"generation", manifest.generation.value()},
          {"ranks", manifest.world},
          {"model", manifest.model},
          {"config", Json::parse(manifest.config_json)},
          {"created_utc", manifest.created_utc},
          {"optimizer_step", manifest.optimizer_step},
          {"random_key", manifest.random_key},
          {"loader_state", manifest.loader_state},
          {"canonical",
           {{"enabled", manifest.canonical.enabled},
            {"virtual_shards", manifest.canonical.virtual_shards}}},
          {"environment", manifest.environment},
          {"groups", std::move(groups)},
          {"tensors", std::move(tensors)},
          {"files", std::move(files)}};
}

std::string Header(const std::string& path, const Manifest& manifest) {
  std::string groups;
  for (const auto& group : manifest.index.groups)
    groups += fmt::format("{}{} ({})", groups.empty() ? "" : ", ", group.name, NameOf(group.dtype));
  std::string text = fmt::format("{}\n", path);
  const auto line = [&](std::string_view key, const std::string& value) {
    text += fmt::format("  {:<15} {}\n", PlainLine(key), PlainLine(value));
  };
  line("model", manifest.model + " " + manifest.config_json);
  line("step", fmt::format("{} (generation {}, {})", manifest.step, manifest.generation.value(),
                           Counted(manifest.world, "rank")));
  line("created", manifest.created_utc);
  line("size", FormatBytes(StoredBytes(manifest)));
  line("groups", groups);
  line("loader", manifest.loader_state);
  line("random key", std::to_string(manifest.random_key));
  line("arithmetic",
       manifest.canonical.enabled
           ? "canonical, " + Counted(manifest.canonical.virtual_shards, "virtual shard")
           : "fast");
  for (const auto& [key, value] : manifest.environment) line(key, value);
  return text;
}

Result<int> Run(const std::string& path, bool json) {
  const checkpoint::Checkpoint opened = MUSTER_TRY(OpenCheckpoint(path));
  const Manifest& manifest = opened.manifest();
  if (json) {
    MUSTER_TRY(PrintJson(ToJson(opened.path(), manifest)));
    return 0;
  }
  std::string text = Header(opened.path(), manifest);
  std::uint64_t elements = 0;
  for (const auto& entry : manifest.index.entries) {
    text += fmt::format("  {:<48} [{}]\n", PlainLine(entry.name), fmt::join(entry.shape, ", "));
    elements += entry.length;
  }
  text += fmt::format("{}, {}\n", Counted(manifest.index.entries.size(), "tensor"),
                      Counted(elements, "parameter"));
  MUSTER_TRY(PrintText(text));
  return 0;
}

}  // namespace

void AddCkptShow(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(parent, "show", "Show what a checkpoint holds", invocation);
  const auto path = std::make_shared<std::string>();
  app->add_option("CKPT", *path, "A checkpoint, or a folder whose newest is meant")->required();
  app->callback([&invocation, path] {
    invocation.action = [&invocation, path] { return Run(*path, invocation.json); };
  });
}

}  // namespace muster::cli

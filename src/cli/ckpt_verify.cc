// muster ckpt verify CKPT: reads every byte and holds it against its checksum; 1 when damaged.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/ckpt_open.h"
#include "cli/verb.h"

namespace muster::cli {
namespace {

Result<int> Run(const std::string& path, bool json) {
  checkpoint::Checkpoint opened = MUSTER_TRY(OpenCheckpoint(path));
  const checkpoint::VerifyReport report = MUSTER_TRY(opened.Verify());
  const bool whole = report.damage.empty();
  if (json) {
    MUSTER_TRY(PrintJson({{"path", opened.path()},
                          {"ok", whole},
                          {"bytes", report.bytes},
                          {"damage", report.damage}}));
    return whole ? 0 : 1;
  }
  std::string text;
  for (const std::string& damage : report.damage) text += PlainLine(damage) + "\n";
  const std::string read = FormatBytes({static_cast<std::int64_t>(report.bytes)});
  const std::string files = Counted(opened.manifest().files.size(), "file");
  text += whole ? fmt::format("{} is whole: {} in {} hold their checksums\n", opened.path(), read,
                              files)
                : fmt::format("{} is damaged in {}, told above; {} in {} were read\n",
                              opened.path(), Counted(report.damage.size(), "place"), read, files);
  MUSTER_TRY(PrintText(text));
  return whole ? 0 : 1;
}

}  // namespace

void AddCkptVerify(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(parent, "verify",
                                "Read a checkpoint and hold it against its checksums", invocation);
  const auto path = std::make_shared<std::string>();
  app->add_option("CKPT", *path, "A checkpoint, or a folder whose newest is meant")->required();
  app->callback([&invocation, path] {
    invocation.action = [&invocation, path] { return Run(*path, invocation.json); };
  });
}

}  // namespace muster::cli

// muster data verify DIR: is every byte what was packed?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "cli/data_progress.h"
#include "cli/verb.h"
#include "data/verify/verify.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;
using data::Damage;
using data::VerifyReport;

struct Arguments {
  std::string folder;
  std::string split;
};

Json RecordedJson(const VerifyReport& report) {
  const data::Extent& recorded = report.recorded;
  return {{"batches", recorded.batches}, {"rows", recorded.rows}, {"bytes", recorded.bytes}};
}

Json ErrorJson(const Error& error) {
  return {
      {"code", TraitsOf(error.code()).name}, {"message", error.message()}, {"hint", error.hint()}};
}

Json ReportJson(const VerifyReport& report) {
  Json damages = Json::array();
  for (const Damage& damage : report.first) {
    Json item = {{"file", damage.file}, {"what", damage.what}};
    if (damage.batch >= 0) item["batch"] = damage.batch;
    if (damage.row >= 0) item["row"] = damage.row;
    damages.push_back(item);
  }
  Json json = {{"split", report.split},
               {"id", report.id.Hex()},
               {"checksums", report.has_checksums},
               {"opened", report.opened},
               {"shards", report.shards},
               {"batches", report.batches},
               {"rows", report.rows},
               {"bytes", report.bytes},
               {"recorded", RecordedJson(report)},
               {"unlabelled", report.unlabelled},
               {"without_image", report.without_image},
               {"damages", report.damages},
               {"first_damages", damages}};
  if (!report.unread.empty()) json["error"] = ErrorJson(report.unread[0]);
  json["unread"] = Json::array();
  for (const Error& error : report.unread) json["unread"].push_back(ErrorJson(error));
  return json;
}

std::string_view Scope(const VerifyReport& report) {
  if (!report.opened) return "it cannot be opened, nothing behind that was checked";
  if (report.lost_checksums) return "structure only, its checksums cannot be read";
  return report.has_checksums ? "all checksums" : "structure only, the set has no checksums";
}

std::string Outcome(const VerifyReport& report) {
  if (report.damages > 0) return fmt::format("{} DAMAGED", report.damages);
  return report.unread.empty() ? "ok" : "NOT CHECKED";
}

/// "0 of ": how much was seen, where that is not all that there ought to be.
std::string Seen(const std::string& seen, const std::string& all) {
  return seen == all ? "" : seen + " of ";
}

std::string SizeText(std::uint64_t bytes) {
  return FormatBytes({static_cast<std::int64_t>(bytes)});
}

/// "  3 rows are without a label"; nothing of none.
std::string Without(std::string_view what, std::uint64_t rows) {
  if (rows == 0) return {};
  return fmt::format("  {} {} without {}\n", rows, rows == 1 ? "row is" : "rows are", what);
}

std::string ReportText(const VerifyReport& report) {
  const auto& [batches, rows, bytes] = report.recorded;
  const std::string all_bytes = SizeText(bytes);
  std::string text =
      fmt::format("{:<12}{:>10} {}  {}  {}{}  {}{}  {}: {}\n",
                  report.split.empty() ? "-" : PlainLine(report.split),
                  Seen(std::to_string(report.rows), std::to_string(rows)) + std::to_string(rows),
                  rows == 1 ? "row" : "rows", Counted(report.shards, "shard"),
                  Seen(std::to_string(report.batches), std::to_string(batches)),
                  Counted(batches, "batch", "es"), Seen(SizeText(report.bytes), all_bytes),
                  all_bytes, Scope(report), Outcome(report));
  text += Without("a label", report.unlabelled) + Without("an image", report.without_image);
  for (const Damage& damage : report.first) text += "  " + PlainLine(damage.ToString()) + "\n";
  if (report.damages > report.first.size()) {
    text += fmt::format("  … and {} more\n", report.damages - report.first.size());
  }
  return text;
}

Result<std::vector<data::SplitPlace>> Places(const Arguments& arguments) {
  auto places = MUSTER_TRY(data::FindSplits(arguments.folder, data::OnDamage::kKeep));
  return data::SplitsNamed(arguments.folder, arguments.split, std::move(places));
}

Result<std::vector<VerifyReport>> VerifyWithProgress(const std::vector<data::SplitPlace>& places) {
  ProgressLine::Options progress = StderrProgress();
  progress.unit = "";
  ProgressLine line(SystemClock(), std::move(progress));
  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
  return data::VerifySplits(
      places, {.threads = cores, .on_progress = [&line](std::uint64_t done, std::uint64_t all) {
                 line.Update(done, all, done);
               }});
}

Result<int> Verify(const Arguments& arguments, bool json) {
  const auto places = MUSTER_TRY(Places(arguments));
  const std::vector<VerifyReport> reports = MUSTER_TRY(VerifyWithProgress(places));
  std::uint64_t damages = 0;
  std::vector<const Error*> unread;
  Json splits = Json::array();
  std::string text;
  for (const VerifyReport& report : reports) {
    damages += report.damages;
    for (const Error& error : report.unread) unread.push_back(&error);
    splits.push_back(ReportJson(report));
    text += ReportText(report);
  }
  const Json document = {{"dataset", arguments.folder},
                         {"ok", damages == 0 && unread.empty()},
                         {"damages", damages},
                         {"splits", splits}};
  if (reports.empty()) text = "no splits\n";
  MUSTER_TRY(json ? Print(document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n")
                  : PrintText(text));
  for (const Error* error : unread) PrintError(*error, false);  // stdout has its document already
  if (damages == 0) return unread.empty() ? 0 : TraitsOf(unread[0]->code()).exit_code;
  Note(fmt::format("muster: {} is damaged in {}; nothing was changed\n", arguments.folder,
                   Counted(damages, "place")));
  Note("  pack it again with --replace, or copy the named files again\n");
  return TraitsOf(Code::kDataLoss).exit_code;
}

}  // namespace

void AddDataVerify(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "verify",
                    "Read a whole dataset and check every digest, CRC, batch and row", invocation);
  auto arguments = std::make_shared<Arguments>();
  app->add_option("DIR", arguments->folder, "A dataset folder, ours or Hugging Face's")->required();
  app->add_option("--split", arguments->split, "Only this split")->type_name("NAME");
  app->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] { return Verify(*arguments, invocation.json); };
  });
}

}  // namespace muster::cli

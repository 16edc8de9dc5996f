// muster data pack INPUT OUT: images into an HF-layout dataset with checksums.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "cli/data_labels.h"
#include "cli/data_progress.h"
#include "cli/stop_on_signal.h"
#include "cli/verb.h"
#include "data/pack/input.h"
#include "data/pack/packer.h"
#include "spec/option_values.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string input;
  std::string out;
  std::string format = "auto";
  std::string on_error = "stop";
  std::string check = "header";
  std::string shard_size = "1GB";
  std::string max_file = "256MiB";
  std::string labels_file;
  std::optional<std::string> labels;
  std::string max_pixels = fmt::to_string(data::kMaxPixels);
  unsigned threads = 0;
  bool replace = false;
  bool no_fsync = false;
};

unsigned CoresOrOne() { return std::clamp(std::thread::hardware_concurrency(), 1u, 64u); }

/// Above this no machine has the memory to look at an image.
constexpr std::uint64_t kMostPixels = 1'000'000'000'000;

Result<std::uint64_t> PixelsOf(const std::string& text) {
  std::uint64_t pixels = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), pixels);
  if (failed == std::errc() && end == text.data() + text.size() && pixels > 0 &&
      pixels <= kMostPixels) {
    return pixels;
  }
  return Error(Code::kInvalid,
               fmt::format("--max-pixels takes a number from 1 to {}, not '{}'", kMostPixels, text),
               "run 'muster help data pack' for the options");
}

/// A size that is at least a byte; errors name the flag.
Result<Bytes> SizeOf(std::string_view flag, const std::string& text) {
  const Bytes size = MUSTER_TRY(Within(flag, ParseBytes(text)));
  if (size.count > 0) return size;
  return Error(Code::kInvalid, fmt::format("{}: '{}' is less than a byte", flag, text),
               "give a size like 64MiB");
}

Result<data::InputOptions> InputOptionsOf(const Arguments& arguments) {
  data::InputOptions options;
  options.format = arguments.format == "idx"      ? data::InputFormat::kIdx
                   : arguments.format == "images" ? data::InputFormat::kImages
                                                  : data::InputFormat::kAuto;
  options.label_names = MUSTER_TRY(LabelNames(arguments.labels, arguments.labels_file));
  options.max_pixels = MUSTER_TRY(PixelsOf(arguments.max_pixels));
  options.max_file = MUSTER_TRY(SizeOf("--max-file", arguments.max_file));
  if (options.max_file > 1_GiB) {
    return Error(
        Code::kInvalid,
        fmt::format("--max-file takes at most 1GiB, not '{}': a batch's offsets have 32 bits",
                    arguments.max_file),
        "leave larger files out of the input");
  }
  options.decode_check = arguments.check == "decode";
  options.leave_out = arguments.on_error == "skip";
  return options;
}

Json SplitsJson(const data::PackReport& report) {
  Json splits = Json::array();
  for (const data::PackedSplit& split : report.splits) {
    splits.push_back({{"split", split.name},
                      {"rows", split.rows},
                      {"shards", split.shards},
                      {"bytes", split.bytes},
                      {"id", split.id.Hex()}});
  }
  return splits;
}

Json ImagesJson(const data::Census& census) {
  constexpr std::size_t kMostListed = 100;
  Json kinds = Json::array();
  std::uint64_t others = census.others();
  for (const data::ImageKind& kind : census.kinds()) {
    if (kinds.size() == kMostListed) {
      others += kind.images;
      continue;
    }
    kinds.push_back({{"width", kind.shape.width},
                     {"height", kind.shape.height},
                     {"channels", kind.shape.channels},
                     {"images", kind.images},
                     {"first", kind.first}});
  }
  return {{"kinds", kinds}, {"others", others}};
}

Json ReportJson(const Arguments& arguments, const std::vector<std::string>& notes,
                const data::PackReport& report, double seconds) {
  Json skipped = Json::array();
  for (const data::SkippedRow& row : report.first_skipped) {
    skipped.push_back({{"image", row.name}, {"reason", row.reason}});
  }
  return {{"output", arguments.out},
          {"rows", report.rows},
          {"image_bytes", report.image_bytes},
          {"seconds", seconds},
          {"images_per_second", static_cast<double>(report.rows) / seconds},
          {"splits", SplitsJson(report)},
          {"images", ImagesJson(report.census)},
          {"skipped", report.skipped},
          {"skipped_images", skipped},
          {"notes", notes}};
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) Note(fmt::format("note: {}\n", PlainLine(note)));
}

void PrintSkipped(const data::PackReport& report) {
  for (const data::SkippedRow& row : report.first_skipped) {
    Note(fmt::format("skipped: {} {}\n", PlainLine(row.name), PlainLine(row.reason)));
  }
  if (report.skipped > report.first_skipped.size()) {
    Note(fmt::format("skipped: … and {} more\n", report.skipped - report.first_skipped.size()));
  }
}

std::string ReportText(const Arguments& arguments, const data::PackReport& report, double seconds) {
  std::string text;
  for (const data::PackedSplit& split : report.splits) {
    text += fmt::format("{:<12}{:>10} {}  {:>3} {}  {:>10}  {}\n", PlainLine(split.name),
                        split.rows, split.rows == 1 ? "image " : "images", split.shards,
                        split.shards == 1 ? "shard " : "shards",
                        FormatBytes({static_cast<std::int64_t>(split.bytes)}), split.id.Hex());
  }
  const double rate = static_cast<double>(report.rows) / seconds;
  const double megabytes = static_cast<double>(report.image_bytes) / seconds / 1e6;
  text += fmt::format(
      "packed {} into {} in {:.2f} s: {:.0f} images/s, {:.1f} MB/s of encoded images\n",
      Counted(report.rows, "image"), PlainLine(arguments.out), seconds, rate, megabytes);
  if (report.skipped > 0)
    text += fmt::format("left out {}\n", Counted(report.skipped, "bad image"));
  return text;
}

Result<data::PackReport> PackWithProgress(data::PackInput& input, const std::string& out,
                                          data::PackOptions options) {
  ProgressLine line(SystemClock(), StderrProgress());
  options.on_progress = [&line](const data::PackProgress& done) {
    line.Update(done.rows, done.all_rows, done.image_bytes);
  };
  return data::Pack(PosixFiles(), input, out, options);
}

Result<int> Pack(const Arguments& arguments, bool json) {
  const Clock& clock = SystemClock();
  const Instant started = clock.Now();
  const Bytes shard_size = MUSTER_TRY(SizeOf("--shard-size", arguments.shard_size));
  auto input = MUSTER_TRY(data::OpenInput(arguments.input, MUSTER_TRY(InputOptionsOf(arguments))));
  PrintNotes(input.notes);
  data::PackOptions options{
      .threads = arguments.threads == 0 ? CoresOrOne() : arguments.threads,
      .shard_size = shard_size,
      .replace = arguments.replace,
      .durable = !arguments.no_fsync,
      .on_error = arguments.on_error == "skip" ? data::OnError::kSkip : data::OnError::kStop};
  const auto stop = MUSTER_TRY(StopOnSignal::Begin());
  options.stop = stop->token();
  const auto packed = PackWithProgress(input, arguments.out, options);
  if (!packed && packed.error().code() == Code::kCancelled) {
    PrintError(packed.error(), json);
    return 128 + stop->number();
  }
  if (!packed) return packed.error();
  const data::PackReport& report = *packed;
  const double seconds =
      std::max(std::chrono::duration<double>(clock.Now() - started).count(), 1e-6);
  PrintSkipped(report);
  std::vector<std::string> late = report.census.Notes();
  if (!report.left_behind.empty()) late.push_back(report.left_behind);
  PrintNotes(late);
  std::vector<std::string> notes = input.notes;
  notes.insert(notes.end(), late.begin(), late.end());
  MUSTER_TRY(json ? Print(ReportJson(arguments, notes, report, seconds)
                              .dump(-1, ' ', false, Json::error_handler_t::replace) +
                          "\n")
                  : PrintText(ReportText(arguments, report, seconds)));
  return 0;
}

void AddOptions(CLI::App& app, Arguments& arguments) {
  app.add_option("INPUT", arguments.input,
                 "Folder of idx files (the MNIST family), or of images with a class per folder")
      ->required();
  app.add_option("OUT", arguments.out, "Folder to make")->required();
  spec::TakeOneOf(
      *app.add_option("--format", arguments.format, "What INPUT is")->capture_default_str(),
      {"auto", "idx", "images"});
  auto* labels = app.add_option("--labels", arguments.labels,
                                "Names of the classes in the order of their numbers, a,b,c")
                     ->type_name("NAMES");
  app.add_option("--labels-file", arguments.labels_file, "The same, one name a line")
      ->type_name("FILE")
      ->excludes(labels);
  spec::TakeWithin(
      *app.add_option("--threads", arguments.threads, "Threads that read and check; 0: one a core")
           ->capture_default_str(),
      {.least = 0, .most = 256});
  spec::TakeOneOf(*app.add_option("--on-error", arguments.on_error,
                                  "A broken image: stop, or skip (left out, counted, reported)")
                       ->capture_default_str(),
                  {"stop", "skip"});
  spec::TakeOneOf(
      *app.add_option("--check", arguments.check, "header, or decode (every pixel; slower)")
           ->capture_default_str(),
      {"header", "decode"});
  app.add_option("--shard-size", arguments.shard_size, "Cut shards at this size")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--max-pixels", arguments.max_pixels, "Refuse larger images")
      ->capture_default_str();
  app.add_option("--max-file", arguments.max_file, "Refuse larger image files")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_flag("--replace", arguments.replace,
               "Exchange an existing dataset at OUT, in one step at the end");
  app.add_flag("--no-fsync", arguments.no_fsync,
               "Do not wait for the disk: faster, but a power cut may lose the new dataset");
}

}  // namespace

void AddDataPack(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "pack",
                    "Turn images into a dataset that Hugging Face datasets opens too", invocation);
  auto arguments = std::make_shared<Arguments>();
  AddOptions(*app, *arguments);
  app->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] { return Pack(*arguments, invocation.json); };
  });
}

}  // namespace muster::cli

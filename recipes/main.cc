#include "main.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/log.h"
#include "base/version.h"
#include "spec/command_line.h"
#include "train/backward.h"
#include "train/trainer.h"
#include "vit/flags.h"

namespace muster::recipes {
namespace {

int Fail(const Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "muster-train: %s\n", error.ToString().c_str());
  // Nobody can cancel this program but another rank; 130 stays the word for an interrupt.
  if (error.code() == Code::kCancelled) return spec::kFollowerExit;
  return TraitsOf(error.code()).exit_code;
}

/// By hand the hint has a line of its own, as with every verb of muster; under muster run one line
/// must hold it all, because the last line of a dead worker stands for its end.
int FailToParse(const Error& error, bool by_hand) {
  if (!by_hand) return Fail(error);
  std::fprintf(stderr, "muster-train: %s\n  %s\n", error.message().c_str(), error.hint().c_str());
  return TraitsOf(error.code()).exit_code;
}

Status TrainVit(const VitFlags& flags, train::Worker& worker) {
  auto run = MUSTER_TRY(PrepareVit(flags, worker));
  MUSTER_TRY(train::CheckFit(run.options, worker.group.world()));
  MUSTER_TRY(OfContent(train::Train(run.task, worker, run.splits, run.options)));
  return Ok();
}

Status RunVit(const VitFlags& flags, const spec::EnvLookup& env) {
  const auto worker_env = MUSTER_TRY(spec::ReadWorkerEnv(env));
  auto worker = MUSTER_TRY(train::OpenWorker(worker_env));
  Status done = TrainVit(flags, worker);
  if (!done) train::NoteRefusal(worker, done.error());
  return done;
}

constexpr const char* kAbout =
    "Trains a model on the ranks that muster run starts, or alone when started by hand.\n\n"
    "  muster-train vit --data DIR                      one rank, 600 steps, test accuracy\n"
    "  muster run -n 2 -- muster-train vit --data DIR   two ranks that survive faults";

int PrintVersion(const std::vector<std::string>& args) {
  const bool json = std::ranges::find(args, "--json") != args.end();
  const std::string version(Version());
  std::puts(json ? ("{\"version\":\"" + version + "\"}").c_str() : version.c_str());
  return 0;
}

}  // namespace

int TrainMain(const std::vector<std::string>& args, const spec::EnvLookup& env) {
  if (spec::AsksForVersion(args)) return PrintVersion(args);
  CLI::App app(kAbout, "muster-train");
  app.set_help_flag("-h,--help", "Print this help and exit");
  bool version = false;
  app.add_flag("--version", version, "Print the version and exit; with --json as JSON");
  app.require_subcommand(1);
  VitFlags vit;
  AddVit(app, vit);
  const auto told = spec::ParseCommandLine(app, args, "recipe");
  if (!told) return FailToParse(told.error(), !env("MUSTER_RUN"));
  if (*told) {
    std::fputs((*told)->c_str(), stdout);
    return 0;
  }
  const Status done = train::Guarded("muster-train", [&]() -> Status { return RunVit(vit, env); });
  return done ? 0 : Fail(done.error());
}

int WarmUp() {
  const auto once = []() -> Status {
    MUSTER_TRY(train::PinArithmetic());
    // The demo's micro-shard: its shapes are the ones whose code paths will be hot.
    constexpr std::size_t kSamples = 16;
    Vit task({});
    train::FlatModel model;
    task.Define(model);
    MUSTER_TRY(model.Materialize());
    task.Initialize(1);
    auto optimizer = MUSTER_TRY(train::AdamW::Create(model, {}));
    std::vector<std::uint64_t> rows(kSamples);
    std::iota(rows.begin(), rows.end(), 0);
    const std::vector<std::int64_t> labels(kSamples);
    const data::ImageShape image{28, 28, 1};
    const std::vector<std::uint8_t> pixels(kSamples * image.bytes(), 1);
    const data::MicroShard shard{
        .valid = kSamples, .rows = rows, .labels = labels, .pixels = pixels};
    model.BeginPass();
    MUSTER_TRY(train::RunBackward(task.Loss({.shard = &shard, .image = image}).sum, 1));
    model.EndPass();
    MUSTER_TRY(optimizer.Step(1e-3));
    return Ok();
  };
  const Status status = train::Guarded("warm-up", once);
  return status ? 0 : Fail(status.error());
}

}  // namespace muster::recipes

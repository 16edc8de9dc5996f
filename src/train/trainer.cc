#include "train/trainer.h"

#include <sched.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "base/log.h"
#include "train/backward.h"
#include "train/evaluate.h"
#include "train/report.h"
#include "train/standing.h"
#include "train/step_timer.h"

namespace muster::train {
namespace {

std::uint32_t VirtualShards(const TrainerOptions& options) {
  return options.mode == Mode::kCanonical ? kVirtualShards : 0;
}

// Labels are held against the names of the classes, where the set has any.
std::uint32_t ClassesOf(const Splits& splits) {
  return static_cast<std::uint32_t>(splits.train->label_names().size());
}

data::LoaderOptions LoaderOptionsOf(const TrainerOptions& options, const coll::Group& group) {
  return {.global_batch = options.global_batch,
          .virtual_shards = VirtualShards(options),
          .rank = group.rank(),
          .world = group.world(),
          .seed = options.seed,
          .order = options.order,
          .image = options.image,
          .colour = options.colour,
          .threads = options.decode_threads};
}

RunIdentity IdentityOf(const Task& task, const TrainerOptions& options) {
  return {.model = std::string(task.name()),
          .config_json = task.ConfigJson(),
          .seed = options.seed,
          .canonical = {.enabled = options.mode == Mode::kCanonical,
                        .virtual_shards = VirtualShards(options)}};
}

// Gradients in the collective arena are reduced without a copy; private memory works as well.
void* ArenaMemory(coll::Group& group, std::size_t bytes) {
  const auto memory = group.Alloc(bytes);
  return memory ? memory->data() : nullptr;
}

// `take`: Materialize or RebindGradients.
Status PlaceGradients(FlatModel& model, coll::Group& group,
                      Status (FlatModel::*take)(const Allocate&)) {
  const auto from_arena = [&](std::size_t bytes) { return ArenaMemory(group, bytes); };
  if ((model.*take)(from_arena)) return Ok();
  log::Info("gradients do not fit the collective arena, reductions will copy",
            {{"bytes", model.GradientBytes()}});
  return (model.*take)({});
}

unsigned UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

// All ranks of an arena are on this machine. They agree, because each may be pinned to other cores.
Result<Overlap> OverlapOf(OverlapChoice choice, coll::Group& group) {
  if (choice == OverlapChoice::kOn) return Overlap::kOnThread;
  if (choice == OverlapChoice::kOff || group.world() == 1) return Overlap::kInline;
  const bool spare = UsableCores() >= 2 * group.world();
  const bool all = MUSTER_TRY(group.AllOk(spare, "overlap"));
  return all ? Overlap::kOnThread : Overlap::kInline;
}

class Run {
 public:
  Run(Task& task, Worker& worker, const Splits& splits, const TrainerOptions& options)
      : task_(task),
        worker_(worker),
        splits_(splits),
        options_(options),
        timer_(worker.heartbeat, worker.clock),
        report_(worker),
        checkpoints_(worker, options.checkpoint, IdentityOf(task, options)) {}

  Result<Outcome> ToTheEnd() {
    MUSTER_TRY(Prepare());
    MUSTER_TRY(BeginGeneration());
    outcome_.first_step = outcome_.step;
    report_.Started(outcome_.step, model_.ParameterCount(), options_);
    if (splits_.test == nullptr) report_.Unevaluated();
    MUSTER_TRY(worker_.link.Ready());
    Status trained = Steps();
    while (!trained) {
      MUSTER_TRY(OutliveFault(trained.error()));
      trained = StepsOfNextGeneration();
    }
    timer_.Enter(os::Phase::kDone);
    return outcome_;
  }

 private:
  Status Steps() {
    // What the last step is owed still: after a fault only.
    MUSTER_TRY(FinishStep());
    while (outcome_.step < options_.steps) MUSTER_TRY(Step());
    if (!outcome_.score) MUSTER_TRY(EvaluateIfDue(true));
    return Ok();
  }

  Status StepsOfNextGeneration() {
    MUSTER_TRY(BeginGeneration());
    report_.WentOn(outcome_.step);
    return Steps();
  }

  // Another rank died: this one unwound to its last step. It waits for the next generation and goes
  // on in it; an error when it cannot, or is not wanted any more.
  Status OutliveFault(const Error& fault) {
    if (fault.code() != Code::kCancelled || !worker_.link.connected()) return Error(fault);
    // The time until here is the step's, not the next generation's.
    if (!published_) Publish();
    timer_.Enter(os::Phase::kInit);
    const auto commit = worker_.link.Quiesce({.applied = outcome_.step, .durable = durable_});
    if (!commit) return Error(fault);
    MUSTER_TRY(GoOn(worker_, *commit));
    return PlaceGradients(model_, worker_.group, &FlatModel::RebindGradients);
  }

  Status Prepare() {
    task_.Define(model_);
    MUSTER_TRY(PlaceGradients(model_, worker_.group, &FlatModel::Materialize));
    optimizer_.emplace(MUSTER_TRY(AdamW::Create(model_, options_.optimizer)));
    data::LoaderOptions data = LoaderOptionsOf(options_, worker_.group);
    data.classes = ClassesOf(splits_);
    loader_ = MUSTER_TRY(data::Loader::Create(splits_.train, data));
    image_ = loader_->image();
    return Ok();
  }

  // All ranks of a generation come here, those that outlived the last one and those that are new.
  Status BeginGeneration() {
    std::optional<Standing> mine;
    if (has_state_) mine = Standing{outcome_.step, stage_};
    const auto meeting = MUSTER_TRY(Meet(worker_.group, mine));
    if (meeting) {
      MUSTER_TRY(checkpoints_.Join(meeting->source));
      MUSTER_TRY(TakeOver(*meeting));
    } else {
      MUSTER_TRY(ResumeOrInitialize());
    }
    has_state_ = true;
    const std::uint32_t passes =
        options_.mode == Mode::kCanonical ? kVirtualShards / worker_.group.world() : 1;
    strategy_.emplace(
        model_, worker_.group,
        DataParallelOptions{
            .passes = passes,
            .overlap = MUSTER_TRY(OverlapOf(options_.overlap, worker_.group)),
            .around_collective = [this](const auto& body) { return DuringComm(body); }});
    return Ok();
  }

  Status TakeOver(const Meeting& meeting) {
    // Half of a newer state is none.
    if (!has_state_ || outcome_.step < meeting.step) has_state_ = false;
    MUSTER_TRY(CopyState(worker_.group, meeting.source, model_, *optimizer_));
    outcome_.step = meeting.step;
    stage_ = meeting.stage;
    return Within("continue the data", loader_->Restore(loader_->StateAt(meeting.step)));
  }

  Status ResumeOrInitialize() {
    const auto resumed = MUSTER_TRY(checkpoints_.Resume(model_, *optimizer_));
    if (resumed) {
      MUSTER_TRY(ContinueData(*resumed));
      outcome_.step = durable_ = resumed->step;
    } else {
      task_.Initialize(options_.seed);
      // A survivor that lost its state half way through taking over another has old moments.
      optimizer_->Reset();
      outcome_.step = 0;
    }
    // A run that died between a save and the evaluation behind it owes the evaluation.
    const bool owes = resumed && EvaluationDue() && MUSTER_TRY(LacksEvaluation());
    stage_ = owes ? Stage::kSaved : Stage::kEvaluated;
    return Ok();
  }

  Status ContinueData(const Position& position) {
    const auto state = MUSTER_TRY(data::LoaderState::Parse(position.loader_state));
    MUSTER_TRY(Within("continue the data", loader_->Restore(state)));
    if (state == loader_->StateAt(position.step)) return Ok();
    return Error(Code::kDataLoss,
                 "the checkpoint of step " + std::to_string(position.step) + " in " +
                     options_.checkpoint.folder + " has read the data up to '" +
                     position.loader_state + "', but that step ends at '" +
                     loader_->StateAt(position.step).ToText() + "'",
                 "its manifest.json was changed: remove that checkpoint to continue an older one");
  }

  Status DuringComm(const std::function<Status()>& body) {
    const os::Phase before = timer_.phase();
    timer_.Enter(os::Phase::kComm);
    Status status = body();
    worker_.heartbeat.Collective(worker_.group.Sequence());
    timer_.Enter(before);
    return status;
  }

  Status Step() {
    timer_.Begin();
    timer_.Enter(os::Phase::kData);
    auto next = loader_->Next();
    if (!next) NoteDataLoss(worker_, next.error());
    const auto batch = MUSTER_TRY(std::move(next));
    MUSTER_CHECK(batch.has_value());  // epochs have no end here
    const double loss = MUSTER_TRY(Gradients(*batch));
    if (!std::isfinite(loss)) return Diverged("the loss is " + std::to_string(loss));
    timer_.Enter(os::Phase::kOptimizer);
    const double rate = LearningRate(options_.schedule, outcome_.step);
    if (const auto norm = optimizer_->Step(rate); !norm) return Diverged(norm.error().message());
    ++outcome_.step;
    stage_ = Stage::kApplied;
    published_ = false;
    outcome_.last_loss = loss;
    report_.Stepped(outcome_.step, loss, rate, options_);
    MUSTER_TRY(FinishStep());
    Publish();
    return Ok();
  }

  // What follows an applied step, from where it was broken off.
  Status FinishStep() {
    if (stage_ == Stage::kApplied) MUSTER_TRY(SaveIfDue());
    if (stage_ == Stage::kApplied) stage_ = Stage::kSaved;
    if (stage_ == Stage::kSaved) MUSTER_TRY(EvaluateIfDue(false));
    stage_ = Stage::kEvaluated;
    return Ok();
  }

  void Publish() {
    timer_.Publish(outcome_.step, outcome_.last_loss);
    published_ = true;
  }

  Result<double> Gradients(const data::Batch& batch) {
    double count = 0;
    for (const data::MicroShard& shard : batch.shards()) count += shard.valid;
    MUSTER_TRY(strategy_->BeginStep(count));
    for (const data::MicroShard& shard : batch.shards()) {
      MUSTER_TRY(Guarded("forward", [&] { return Pass(shard); }));
    }
    return strategy_->FinishStep();
  }

  Status Pass(const data::MicroShard& shard) {
    timer_.Enter(os::Phase::kForward);
    strategy_->BeginPass();
    const nn::LossSum loss = task_.Loss(
        {.shard = &shard, .image = image_, .seed = options_.seed, .step = outcome_.step});
    timer_.Enter(os::Phase::kBackward);
    return strategy_->Backward(loss);
  }

  // Loss and gradient have the same bits on every rank, so every rank comes here or none.
  Status Diverged(const std::string& why) const {
    return Error(Code::kInvalid,
                 "step " + std::to_string(outcome_.step + 1) + " diverged: " + why +
                     "; the step was not applied and nothing of it was saved",
                 "lower --lr, lengthen --warm-up or set --clip-norm");
  }

  Status SaveIfDue() {
    if (!checkpoints_.Due(outcome_.step, options_.steps)) return Ok();
    timer_.Enter(os::Phase::kCheckpoint);
    const Report::Pause pause(report_);
    MUSTER_TRY(checkpoints_.Save({.step = outcome_.step, .loader_state = loader_->State().ToText()},
                                 model_, *optimizer_));
    durable_ = outcome_.step;
    return Ok();
  }

  bool EvaluationDue() const {
    return splits_.test != nullptr && options_.eval_every > 0 && outcome_.step > 0 &&
           outcome_.step % options_.eval_every == 0;
  }

  // What rank 0 finds in the run folder, on every rank.
  Result<bool> LacksEvaluation() {
    std::uint64_t lacks = report_.LacksEvaluation(outcome_.step) ? 1 : 0;
    MUSTER_TRY(worker_.group.Broadcast(std::as_writable_bytes(std::span(&lacks, 1)), Rank{0},
                                       "owed evaluation"));
    return lacks != 0;
  }

  Status EvaluateIfDue(bool always) {
    const bool wanted = always || EvaluationDue() || outcome_.step == options_.steps;
    if (splits_.test == nullptr || !wanted) return Ok();
    timer_.Enter(os::Phase::kEval);
    const Report::Pause pause(report_);
    outcome_.score = MUSTER_TRY(Evaluate(task_, worker_, splits_.test,
                                         {.virtual_shards = VirtualShards(options_),
                                          .image = image_,
                                          .colour = options_.colour,
                                          .classes = ClassesOf(splits_),
                                          .decode_threads = options_.decode_threads}));
    report_.Evaluated(outcome_.step, splits_.test_name, *outcome_.score);
    return Ok();
  }

  Task& task_;
  Worker& worker_;
  const Splits& splits_;
  const TrainerOptions& options_;
  StepTimer timer_;
  Report report_;
  Checkpoints checkpoints_;
  FlatModel model_;
  std::optional<AdamW> optimizer_;
  std::unique_ptr<data::Loader> loader_;
  data::ImageShape image_;
  std::optional<DataParallel> strategy_;
  Outcome outcome_;
  bool has_state_ = false;           // model and optimizer are those of outcome_.step
  Stage stage_ = Stage::kEvaluated;  // of that step
  bool published_ = true;            // its record
  std::uint64_t durable_ = 0;
};

}  // namespace

Result<Mode> ParseMode(std::string_view name) {
  if (name == "canonical") return Mode::kCanonical;
  if (name == "fast") return Mode::kFast;
  return Error(Code::kInvalid, "there is no mode '" + std::string(name) + "'",
               "take canonical or fast");
}

Result<OverlapChoice> ParseOverlap(std::string_view name) {
  if (name == "auto") return OverlapChoice::kAuto;
  if (name == "on") return OverlapChoice::kOn;
  if (name == "off") return OverlapChoice::kOff;
  return Error(Code::kInvalid, "there is no overlap '" + std::string(name) + "'",
               "take auto, on or off");
}

Status CheckFit(const TrainerOptions& options, std::uint32_t world) {
  MUSTER_TRY(Validate(options.schedule));
  if (options.steps == 0) return Error(Code::kInvalid, "0 steps: nothing to train");
  if (options.global_batch == 0) return Error(Code::kInvalid, "a batch of 0 samples");
  if (options.mode == Mode::kFast) {
    if (options.global_batch % world == 0) return Ok();
    return Error(Code::kInvalid, "a batch of " + std::to_string(options.global_batch) +
                                     " does not divide over " + std::to_string(world) + " ranks");
  }
  if (kVirtualShards % world != 0) {
    return Error(Code::kInvalid,
                 "canonical mode splits a batch into " + std::to_string(kVirtualShards) +
                     " micro-shards, which " + std::to_string(world) + " ranks do not divide",
                 "run 1, 2, 4 or 8 ranks, or take --mode fast");
  }
  if (options.global_batch % kVirtualShards != 0) {
    return Error(Code::kInvalid,
                 "canonical mode splits a batch into " + std::to_string(kVirtualShards) +
                     " micro-shards, which do not divide a batch of " +
                     std::to_string(options.global_batch),
                 "take a batch that is a multiple of " + std::to_string(kVirtualShards));
  }
  return Ok();
}

Result<Outcome> Train(Task& task, Worker& worker, const Splits& splits,
                      const TrainerOptions& options) {
  MUSTER_TRY(CheckFit(options, worker.group.world()));
  Outcome outcome;
  MUSTER_TRY(Guarded("training", [&]() -> Status {
    outcome = MUSTER_TRY(Run(task, worker, splits, options).ToTheEnd());
    return Ok();
  }));
  return outcome;
}

}  // namespace muster::train

#include "train/checkpoints.h"

#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "data/order/loader_state.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/open.h"
#include "train/checkpoint/save.h"

namespace muster::train {
namespace {

constexpr std::string_view kMoment1 = "exp_avg";
constexpr std::string_view kMoment2 = "exp_avg_sq";
// For a rank 0 of the generation before that is still dying.
constexpr std::chrono::seconds kLockPatience{10};

class GroupAgreement final : public checkpoint::Agreement {
 public:
  explicit GroupAgreement(Worker& worker) : worker_(&worker) {}
  /// Who waits here waits for the slowest rank, not for its own disk.
  Result<bool> AllOk(bool ok) override {
    worker_->heartbeat.Enter(os::Phase::kComm, worker_->clock.Now());
    auto all = worker_->group.AllOk(ok, "checkpoint");
    worker_->heartbeat.Enter(os::Phase::kCheckpoint, worker_->clock.Now());
    return all;
  }

 private:
  Worker* worker_;
};

// The state of one group in one unit, and where the unit begins in the flat space.
struct Piece {
  std::string_view group;
  std::uint64_t begin = 0;
  std::span<float> values;
};

std::vector<Piece> PiecesOf(const FlatModel& model, const AdamW& optimizer) {
  std::vector<Piece> pieces;
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < model.units().size(); ++i) {
    const auto values = model.units()[i]->values();
    pieces.push_back({checkpoint::kParamGroup, begin, values});
    pieces.push_back({kMoment1, begin, optimizer.Moment1(i)});
    pieces.push_back({kMoment2, begin, optimizer.Moment2(i)});
    begin += values.size();
  }
  return pieces;
}

// The part of each piece in [first, last) of the flat space.
std::vector<checkpoint::Slice> SlicesWithin(const std::vector<Piece>& pieces, std::uint64_t first,
                                            std::uint64_t last) {
  std::vector<checkpoint::Slice> slices;
  for (const Piece& piece : pieces) {
    const std::uint64_t begin = std::max(first, piece.begin);
    const std::uint64_t end = std::min(last, piece.begin + piece.values.size());
    if (begin >= end) continue;
    const auto part = piece.values.subspan(begin - piece.begin, end - begin);
    slices.push_back(
        {.group = std::string(piece.group), .begin = begin, .data = std::as_bytes(part)});
  }
  return slices;
}

// Rank r of w writes the r-th of w equal parts, cut at multiples of 64 bytes.
std::uint64_t PartBegin(std::uint64_t length, std::uint64_t rank, std::uint64_t world) {
  const std::uint64_t blocks = length / kAlignFloats;
  return blocks * rank / world * kAlignFloats;
}

Status ReadUnit(checkpoint::Checkpoint& from, const Unit& unit, std::string_view group,
                std::span<float> into) {
  for (const auto& parameter : unit.parameters()) {
    const auto part = into.subspan(static_cast<std::size_t>(parameter->offset),
                                   static_cast<std::size_t>(parameter->length));
    MUSTER_TRY(from.ReadTensor(group, parameter->name, std::as_writable_bytes(part)));
  }
  return Ok();
}

Error RankZeroCannotUse(const std::string& folder) {
  return Error(Code::kCancelled, "rank 0 could not use the checkpoint folder " + folder,
               "its own message says why");
}

// What the checksums cannot tell: whether texts and numbers are a position of this program.
Status CheckPosition(const std::string& path, const checkpoint::Manifest& manifest) {
  const auto damaged = [&](const std::string& what) {
    return Error(Code::kDataLoss, path + "/manifest.json: " + what);
  };
  if (manifest.optimizer_step != manifest.step) {
    return damaged("the optimizer has done " + std::to_string(manifest.optimizer_step) + " of " +
                   std::to_string(manifest.step) + " steps");
  }
  const auto state = data::LoaderState::Parse(manifest.loader_state);
  if (state) return Ok();
  if (state.error().code() == Code::kInvalid)
    return damaged("loader_state: " + state.error().message());
  return Error(state.error()).Within(path);
}

}  // namespace

checkpoint::FlatIndex IndexOf(const FlatModel& model) {
  checkpoint::FlatIndex index;
  for (const auto& unit : model.units()) {
    for (const auto& parameter : unit->parameters()) {
      index.entries.push_back(
          {.name = parameter->name,
           .shape = {parameter->shape.begin(), parameter->shape.end()},
           .offset = index.length + static_cast<std::uint64_t>(parameter->offset),
           .length = static_cast<std::uint64_t>(parameter->length)});
    }
    index.length += unit->values().size();
  }
  for (const std::string_view group : {checkpoint::kParamGroup, kMoment1, kMoment2}) {
    index.groups.push_back({.name = std::string(group), .dtype = checkpoint::DType::kF32});
  }
  return index;
}

Checkpoints::Checkpoints(Worker& worker, const CheckpointOptions& options,
                         const RunIdentity& identity)
    : worker_(&worker), options_(options), identity_(identity) {}

bool Checkpoints::Due(std::uint64_t step, std::uint64_t total) const {
  if (options_.folder.empty()) return false;
  return step == total || (options_.every > 0 && step % options_.every == 0);
}

// Rank 0: the folder is there, ours, writable and clean. The steps that are in it, oldest first.
Result<std::vector<std::uint64_t>> Checkpoints::TakeFolder() {
  const std::string& folder = options_.folder;
  MUSTER_TRY(checkpoint::CheckRunFolder(worker_->files, worker_->env.generation_file));
  MUSTER_TRY(checkpoint::MakeFolder(worker_->files, folder));
  // Under muster run the parent of all ranks starts another rank 0 when this one dies.
  const int keeper = worker_->env.run_id.empty() ? 0 : ::getppid();
  lock_ = MUSTER_TRY(checkpoint::FolderLock::Take(folder, run_, kLockPatience, keeper));
  if (!lock_->held()) {
    log::Warn(
        "the file system of the checkpoint folder has no locks, take care that no other run "
        "writes into it",
        {{"folder", folder}});
  }
  MUSTER_TRY(checkpoint::ProbeFolder(worker_->files, folder));
  MUSTER_TRY(checkpoint::CleanLeftovers(worker_->files, folder));
  std::vector<std::uint64_t> steps;
  for (const auto& info : MUSTER_TRY(checkpoint::ListCheckpoints(worker_->files, folder))) {
    steps.push_back(info.step);
  }
  return steps;
}

// The newest of rank 0's candidates that was not passed over yet; nothing when none is left.
Result<std::optional<std::uint64_t>> Checkpoints::AgreeOnStep(
    const Result<std::vector<std::uint64_t>>& candidates) {
  // {0: none, 1: found, 2: rank 0 failed; the step}
  std::array<std::uint64_t, 2> word{};
  if (!candidates) word[0] = 2;
  if (candidates && candidates->size() > damaged_.size()) {
    word = {1, (*candidates)[candidates->size() - 1 - damaged_.size()]};
  }
  MUSTER_TRY(
      worker_->group.Broadcast(std::as_writable_bytes(std::span(word)), Rank{0}, "resume step"));
  if (!candidates) return Error(candidates.error()).Within("checkpoint folder " + options_.folder);
  if (word[0] == 2) return RankZeroCannotUse(options_.folder);
  if (word[0] == 0) return std::optional<std::uint64_t>();
  return std::optional(word[1]);
}

void Checkpoints::WarnOfOtherBits(const checkpoint::Manifest& manifest) const {
  if (!worker_->IsFirst()) return;
  if (manifest.canonical != identity_.canonical) {
    log::Warn("resumed in another arithmetic mode, bits will differ",
              {{"checkpoint_virtual_shards", manifest.canonical.virtual_shards},
               {"run_virtual_shards", identity_.canonical.virtual_shards}});
  }
  for (const auto& [name, value] : worker_->arithmetic.ToMap()) {
    const auto found = manifest.environment.find(name);
    if (found == manifest.environment.end() || found->second == value) continue;
    log::Warn("resumed on another arithmetic, bits may differ",
              {{"what", name}, {"checkpoint", found->second}, {"here", value}});
  }
}

Result<Position> Checkpoints::Load(std::uint64_t step, FlatModel& model, AdamW& optimizer) {
  const auto all = MUSTER_TRY(checkpoint::ListCheckpoints(worker_->files, options_.folder));
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const auto& candidate) { return candidate.step == step; });
  if (found == all.end()) {
    return Error(Code::kNotFound,
                 "the checkpoint of step " + std::to_string(step) +
                     " that rank 0 found is not in " + options_.folder,
                 "every rank must see the same checkpoint folder");
  }
  auto from = MUSTER_TRY(checkpoint::Checkpoint::Open(worker_->files, found->path));
  const checkpoint::Manifest& manifest = from.manifest();
  MUSTER_TRY(
      Within(found->path, checkpoint::RequireSame(manifest, identity_.model, IndexOf(model))));
  MUSTER_TRY(Within(found->path, checkpoint::RequireSameConfig(manifest, identity_.config_json)));
  if (manifest.random_key != identity_.seed) {
    return Error(Code::kPrecondition,
                 found->path + " is of a run with seed " + std::to_string(manifest.random_key) +
                     ", this one has " + std::to_string(identity_.seed),
                 "give --seed " + std::to_string(manifest.random_key) +
                     " to continue it, or another --checkpoint-dir to start anew");
  }
  MUSTER_TRY(CheckPosition(found->path, manifest));
  for (std::size_t i = 0; i < model.units().size(); ++i) {
    const Unit& unit = *model.units()[i];
    MUSTER_TRY(ReadUnit(from, unit, checkpoint::kParamGroup, unit.values()));
    MUSTER_TRY(ReadUnit(from, unit, kMoment1, optimizer.Moment1(i)));
    MUSTER_TRY(ReadUnit(from, unit, kMoment2, optimizer.Moment2(i)));
  }
  optimizer.RestoreSteps(manifest.optimizer_step);
  WarnOfOtherBits(manifest);
  return Position{.step = manifest.step, .loader_state = manifest.loader_state};
}

// Loads a checkpoint on every rank; nothing when it is damaged for any of them.
Result<std::optional<Position>> Checkpoints::Try(std::uint64_t step, FlatModel& model,
                                                 AdamW& optimizer) {
  auto loaded = Load(step, model, optimizer);
  const bool damaged = !loaded && loaded.error().code() == Code::kDataLoss;
  if (!MUSTER_TRY(worker_->group.AllOk(loaded || damaged, "checkpoint loaded"))) {
    if (!loaded && !damaged) return std::move(loaded.error());
    return Error(Code::kCancelled,
                 "another rank could not load the checkpoint of step " + std::to_string(step),
                 "its own message says why");
  }
  if (MUSTER_TRY(worker_->group.AllOk(!damaged, "checkpoint intact"))) {
    worker_->heartbeat.Durable(step);
    return std::optional(*std::move(loaded));
  }
  damaged_.push_back(step);
  if (damaged) {
    const std::string& message = loaded.error().message();
    log::Warn("a checkpoint is damaged and passed over for the next older one; it is left in place",
              {{"step", step}, {"damage", message}});
    if (damage_.empty()) damage_ = message;
  }
  return std::optional<Position>();
}

Status Checkpoints::AgreeOnRun() {
  std::uint64_t pid = static_cast<std::uint64_t>(::getpid());
  MUSTER_TRY(worker_->group.Broadcast(std::as_writable_bytes(std::span(&pid, 1)), Rank{0}, "run"));
  const std::string& id = worker_->env.run_id;
  run_ = checkpoint::RunTag(id.empty() ? "p" + std::to_string(pid) : id);
  return Ok();
}

Status Checkpoints::Join(Rank source) {
  if (options_.folder.empty()) return Ok();
  MUSTER_TRY(AgreeOnRun());
  Result<std::vector<std::uint64_t>> taken;
  if (worker_->IsFirst() && !lock_) taken = TakeFolder();
  if (!MUSTER_TRY(worker_->group.AllOk(taken.has_value(), "checkpoint folder"))) {
    if (!taken) return Error(taken.error()).Within("checkpoint folder " + options_.folder);
    return RankZeroCannotUse(options_.folder);
  }
  std::uint64_t count = damaged_.size();
  MUSTER_TRY(
      worker_->group.Broadcast(std::as_writable_bytes(std::span(&count, 1)), source, "damaged"));
  damaged_.resize(count);
  if (count == 0) return Ok();
  return worker_->group.Broadcast(std::as_writable_bytes(std::span(damaged_)), source, "damaged");
}

Result<std::optional<Position>> Checkpoints::Resume(FlatModel& model, AdamW& optimizer) {
  if (options_.folder.empty()) return std::optional<Position>();
  MUSTER_TRY(AgreeOnRun());
  Result<std::vector<std::uint64_t>> candidates;
  if (worker_->IsFirst()) candidates = TakeFolder();
  for (;;) {
    const auto step = MUSTER_TRY(AgreeOnStep(candidates));
    if (!step) break;
    auto loaded = MUSTER_TRY(Try(*step, model, optimizer));
    if (loaded) return loaded;
  }
  if (damaged_.empty()) return std::optional<Position>();
  return Error(
      Code::kDataLoss,
      "none of the " + std::to_string(damaged_.size()) + " checkpoints in " + options_.folder +
          " is intact" + (damage_.empty() ? "" : ": " + damage_),
      "muster ckpt verify says what is damaged; give another --checkpoint-dir to start anew");
}

Status Checkpoints::Save(const Position& position, const FlatModel& model, const AdamW& optimizer) {
  GroupAgreement agreement(*worker_);
  checkpoint::SaveRequest request;
  request.folder = options_.folder;
  request.run = run_;
  request.damaged = damaged_;
  request.rank = worker_->group.rank();
  request.generation_file = worker_->env.generation_file;
  request.keep_last = options_.keep_last;
  request.replace_existing = true;
  request.manifest = {.step = position.step,
                      .generation = worker_->env.generation,
                      .world = worker_->group.world(),
                      .model = identity_.model,
                      .config_json = identity_.config_json,
                      .index = IndexOf(model),
                      .loader_state = position.loader_state,
                      .random_key = identity_.seed,
                      .optimizer_step = optimizer.steps(),
                      .canonical = identity_.canonical,
                      .environment = worker_->arithmetic.ToMap(),
                      .created_utc = FormatUtc(worker_->clock.Wall())};
  const std::uint64_t rank = request.rank.value();
  const std::uint64_t world = request.manifest.world;
  const std::uint64_t length = request.manifest.index.length;
  request.slices = SlicesWithin(PiecesOf(model, optimizer), PartBegin(length, rank, world),
                                PartBegin(length, rank + 1, world));
  const auto report = MUSTER_TRY(checkpoint::Save(worker_->files, agreement, request));
  std::erase(damaged_, position.step);  // whole again
  for (const std::string& note : report.notes) {
    log::Warn("checkpoint committed, with a remark", {{"step", position.step}, {"note", note}});
  }
  worker_->heartbeat.Durable(position.step);
  return Ok();
}

}  // namespace muster::train

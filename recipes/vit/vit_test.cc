#include "vit/vit.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "train/backward.h"
#include "train/checkpoint/digest.h"
#include "train/report.h"
#include "train/trainer.h"
#include "vit/memory_images.h"

namespace muster::recipes {
namespace {

constexpr data::ImageShape kImage{.height = 8, .width = 8, .channels = 1};
constexpr std::uint64_t kSeed = 11;

VitOptions SmallModel() {
  return {.image = kImage,
          .patch = 4,
          .width = 32,
          .blocks = 2,
          .heads = 2,
          .classes = 4,
          .augmentation = {.crop_padding = 1, .flip = true}};
}

train::TrainerOptions SmallRun(std::uint64_t steps) {
  train::TrainerOptions options{.steps = steps, .global_batch = 32, .seed = kSeed};
  options.image = kImage;
  options.decode_threads = 0;
  options.log_every = 0;
  options.schedule = {.peak = 2e-3, .total = steps, .warm_up = 2};
  options.optimizer.clip_norm = 1;
  return options;
}

// A folder that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "muster_vit_XXXXXX").string();
    MUSTER_CHECK(mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

Result<train::Outcome> TrainHere(const spec::WorkerEnv& env, const VitOptions& model,
                                 const train::TrainerOptions& options) {
  auto worker = MUSTER_TRY(train::OpenWorker(env));
  Vit task(model);
  const train::Splits splits{.train = std::make_shared<MemoryImages>(96, kImage, 1),
                             .test = std::make_shared<MemoryImages>(50, kImage, 2)};
  return train::Train(task, worker, splits, options);
}

// Trains on `world` ranks, each a forked process. Returns how many ended well.
std::uint32_t TrainForked(std::uint32_t world, const VitOptions& model,
                          const train::TrainerOptions& options) {
  const int arena = world == 1 ? -1 : coll::CreateArena(world, 8U << 20, Generation{1}).value();
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    if (fork() != 0) continue;
    const auto outcome =
        TrainHere({.rank = Rank{rank}, .world = world, .arena_fd = arena}, model, options);
    if (!outcome) std::fprintf(stderr, "%s\n", outcome.error().ToString().c_str());
    std::fflush(nullptr);
    _exit(outcome ? 0 : 1);
  }
  std::uint32_t well = 0;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    int status = 0;
    wait(&status);
    if (status == 0) ++well;
  }
  if (arena >= 0) close(arena);
  return well;
}

// Of parameters and optimizer state in the newest checkpoint.
std::string DigestIn(const std::string& folder) {
  const auto path = checkpoint::ResolveCheckpoint(PosixFiles(), folder);
  MUSTER_CHECK(path.has_value());
  auto opened = checkpoint::Checkpoint::Open(PosixFiles(), *path);
  MUSTER_CHECK(opened.has_value());
  return checkpoint::Digest(*opened, checkpoint::kAllGroups).value();
}

TEST(CanonicalMode, GivesTheSameBitsOnOneTwoFourAndEightRanks) {
  const Folder folder;
  std::vector<std::string> digests;
  for (const std::uint32_t world : {1U, 2U, 4U, 8U}) {
    auto options = SmallRun(6);
    options.checkpoint.folder = folder / ("world-" + std::to_string(world));
    ASSERT_EQ(TrainForked(world, SmallModel(), options), world);
    digests.push_back(DigestIn(options.checkpoint.folder));
  }
  for (const std::string& digest : digests) EXPECT_EQ(digest, digests[0]);
}

TEST(CanonicalMode, ContinuesFromACheckpointOnAnotherNumberOfRanksWithTheSameBits) {
  const Folder folder;
  auto straight = SmallRun(8);
  straight.checkpoint.folder = folder / "straight";
  ASSERT_EQ(TrainForked(2, SmallModel(), straight), 2U);

  auto broken = SmallRun(8);
  broken.checkpoint = {.folder = folder / "broken", .every = 3};
  ASSERT_EQ(TrainForked(4, SmallModel(), broken), 4U);
  // As if the run had died after step 5: what is behind step 3 is gone.
  std::filesystem::remove_all(folder / "broken/step-000000000006");
  std::filesystem::remove_all(folder / "broken/step-000000000008");
  ASSERT_EQ(TrainForked(1, SmallModel(), broken), 1U);
  EXPECT_EQ(DigestIn(broken.checkpoint.folder), DigestIn(straight.checkpoint.folder));
}

TEST(FastMode, AgreesWithCanonicalModeUpToRounding) {
  auto canonical = SmallRun(10);
  auto fast = canonical;
  fast.mode = train::Mode::kFast;
  const auto a = TrainHere({}, SmallModel(), canonical);
  const auto b = TrainHere({}, SmallModel(), fast);
  ASSERT_TRUE(a && b);
  EXPECT_NEAR(a->last_loss, b->last_loss, 1e-5);
  EXPECT_EQ(a->score->count, 50U);
  EXPECT_EQ(b->score->count, 50U);
}

TEST(Training, LearnsAndCountsEveryTestRowOnce) {
  VitOptions model = SmallModel();
  model.augmentation = {.crop_padding = 0, .flip = false};
  auto options = SmallRun(60);
  options.schedule.peak = 5e-3;
  const auto outcome = TrainHere({}, model, options);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->score->count, 50U);
  EXPECT_GE(outcome->score->correct, 45U);
}

TEST(Training, StopsWithTheStepWhenTheLossIsNoNumber) {
  auto options = SmallRun(20);
  options.schedule = {.shape = train::Shape::kConstant, .peak = 1e30, .total = 20};
  const auto outcome = TrainHere({}, SmallModel(), options);
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message().find("diverged"), std::string::npos);
}

// A model whose loss is a number while the gradient is not, from a step on.
class PoisonedVit final : public train::Task {
 public:
  PoisonedVit(const VitOptions& options, std::uint64_t from) : vit_(options), from_(from) {}
  std::string_view name() const override { return vit_.name(); }
  std::string ConfigJson() const override { return vit_.ConfigJson(); }
  void Define(train::FlatModel& model) override {
    if (from_ == kInDefine) throw std::out_of_range("in Define");
    vit_.Define(model);
    extra_ = &model.AddUnit("extra").Add("value", {4});
  }
  void Initialize(std::uint64_t seed) override {
    if (from_ == kInInitialize) throw std::runtime_error("in Initialize");
    vit_.Initialize(seed);
  }
  nn::LossSum Loss(const train::Samples& samples) override {
    nn::LossSum loss = vit_.Loss(samples);
    // √ of 0 is 0, its slope is not a number times 0.
    if (samples.step >= from_) loss.sum = loss.sum + extra_->value.sqrt().sum().to(at::kDouble);
    return loss;
  }
  train::Score Evaluate(const train::Samples& samples) override { return vit_.Evaluate(samples); }
  static constexpr std::uint64_t kInDefine = 1000;
  static constexpr std::uint64_t kInInitialize = 1001;

 private:
  Vit vit_;
  std::uint64_t from_;
  train::Parameter* extra_ = nullptr;
};

Result<train::Outcome> TrainPoisoned(std::uint64_t from, const train::TrainerOptions& options) {
  auto worker = MUSTER_TRY(train::OpenWorker({}));
  PoisonedVit task(SmallModel(), from);
  return train::Train(task, worker, {.train = std::make_shared<MemoryImages>(96, kImage, 1)},
                      options);
}

TEST(Training, StopsBeforeAnInfiniteGradientOfAFiniteLossPoisonsAWeight) {
  const Folder folder;
  auto options = SmallRun(6);
  options.optimizer.clip_norm = 0;
  options.checkpoint = {.folder = folder / "checkpoints", .every = 1};
  const auto outcome = TrainPoisoned(3, options);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), Code::kInvalid);
  EXPECT_NE(outcome.error().message().find("step 4 diverged: the norm of the gradient is"),
            std::string::npos)
      << outcome.error().message();
  EXPECT_EQ(*checkpoint::ResolveCheckpoint(PosixFiles(), options.checkpoint.folder),
            folder / "checkpoints/step-000000000003");
}

TEST(Training, MakesAnErrorOfWhatATaskThrowsAnywhere) {
  for (const std::uint64_t where : {PoisonedVit::kInDefine, PoisonedVit::kInInitialize}) {
    const auto outcome = TrainPoisoned(where, SmallRun(2));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code(), Code::kBug);
    EXPECT_NE(outcome.error().message().find("training: in "), std::string::npos);
  }
}

TEST(Training, NamesTheRowOfALabelThatIsNoClass) {
  for (const bool in_test : {false, true}) {
    for (const std::int64_t label : {-1, 4}) {
      auto worker = train::OpenWorker({});
      ASSERT_TRUE(worker);
      Vit task(SmallModel());
      const auto train = std::make_shared<MemoryImages>(96, kImage, 1);
      const auto test = std::make_shared<MemoryImages>(50, kImage, 2);
      MemoryImages& bad = in_test ? *test : *train;
      bad.bad_row = 7;
      bad.bad_label = label;
      const auto outcome = train::Train(task, *worker, {.train = train, .test = test}, SmallRun(6));
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().code(), Code::kPrecondition);
      EXPECT_NE(outcome.error().message().find("memory, row 7: the label is " +
                                               std::to_string(label) + ", expected 0 to 3"),
                std::string::npos)
          << outcome.error().message();
    }
  }
}

TEST(Vit, NamesAPatchThatFits) {
  const auto hint_of = [](std::uint32_t height, std::uint32_t width, std::int64_t patch) {
    VitOptions options = SmallModel();
    options.image = {height, width, 1};
    options.patch = patch;
    const Status valid = Validate(options);
    return valid ? std::string("valid") : valid.error().hint();
  };
  EXPECT_EQ(hint_of(32, 32, 7), "--patch 8 divides them");
  EXPECT_EQ(hint_of(28, 28, 8), "--patch 7 divides them");
  EXPECT_EQ(hint_of(224, 160, 15), "--patch 16 divides them");
  EXPECT_EQ(hint_of(32, 32, 100), "--patch 16 divides them");
  EXPECT_EQ(hint_of(31, 31, 7).find("only --patch 1 divides them: resize"), 0U);
  EXPECT_EQ(hint_of(1, 1, 7).find("resize"), 0U);
  EXPECT_EQ(hint_of(1U << 31, 1U << 31, 65535), "--patch 65536 divides them");
  EXPECT_EQ(hint_of(28, 28, 7), "valid");
}

TEST(Report, WritesNullForWhatIsNoNumber) {
  EXPECT_EQ(train::EvalLine(5, 2, {.loss_sum = NAN, .correct = 1, .count = 4}),
            "{\"step\":5,\"gen\":2,\"accuracy\":0.250000,\"loss\":null,\"samples\":4}\n");
  EXPECT_EQ(train::EvalLine(5, 2, {.loss_sum = INFINITY}),
            "{\"step\":5,\"gen\":2,\"accuracy\":null,\"loss\":null,\"samples\":0}\n");
}

TEST(DataParallel, ReducesBesideBackwardWithTheSameBitsAndAnyNumberOfUnits) {
  const Folder folder;
  VitOptions deep = SmallModel();
  deep.blocks = 70;  // more units than reductions may be in flight
  std::vector<std::string> digests;
  for (const auto overlap : {train::OverlapChoice::kOn, train::OverlapChoice::kOff}) {
    auto options = SmallRun(3);
    options.overlap = overlap;
    options.checkpoint.folder = folder / ("overlap-" + std::to_string(static_cast<int>(overlap)));
    ASSERT_EQ(TrainForked(2, deep, options), 2U);
    digests.push_back(DigestIn(options.checkpoint.folder));
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(Training, RefusesACheckpointOfAnotherShapeAndNamesBoth) {
  const Folder folder;
  auto options = SmallRun(2);
  options.checkpoint.folder = folder / "checkpoints";
  ASSERT_TRUE(TrainHere({}, SmallModel(), options));
  VitOptions other = SmallModel();
  other.width = 16;
  const auto outcome = TrainHere({}, other, options);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), Code::kPrecondition);
  EXPECT_NE(outcome.error().message().find("32"), std::string::npos);
  EXPECT_NE(outcome.error().message().find("16"), std::string::npos);
}

TEST(Training, RefusesToContinueWithAnotherSeed) {
  const Folder folder;
  auto options = SmallRun(2);
  options.checkpoint.folder = folder / "checkpoints";
  ASSERT_TRUE(TrainHere({}, SmallModel(), options));
  options.seed = kSeed + 1;
  const auto outcome = TrainHere({}, SmallModel(), options);
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message().find("seed 11"), std::string::npos);
}

TEST(Training, RefusesWorldsAndBatchesThatDoNotFitTheMicroShards) {
  EXPECT_TRUE(train::CheckFit(SmallRun(9), 8));
  const Status three = train::CheckFit(SmallRun(9), 3);
  ASSERT_FALSE(three);
  EXPECT_NE(three.error().message().find("3 ranks"), std::string::npos);
  auto odd = SmallRun(9);
  odd.global_batch = 30;
  EXPECT_FALSE(train::CheckFit(odd, 1));
  odd.mode = train::Mode::kFast;
  EXPECT_TRUE(train::CheckFit(odd, 3));
  EXPECT_FALSE(train::CheckFit(odd, 4));
}

// The same model in plain ATen, from the same parameters.
at::Tensor PlainLogits(const train::FlatModel& model, const at::Tensor& patches_BTP,
                       std::map<std::string, at::Tensor>& leaves) {
  for (const auto& unit : model.units()) {
    for (const auto& parameter : unit->parameters()) {
      leaves[parameter->name] = parameter->value.variable_data().clone().requires_grad_(true);
    }
  }
  const auto linear = [&](const std::string& name, const at::Tensor& x) {
    return at::linear(x, leaves.at(name + ".weight"), leaves.at(name + ".bias"));
  };
  const auto norm = [&](const std::string& name, const at::Tensor& x) {
    return at::layer_norm(x, {x.size(-1)}, leaves.at(name + ".gain"), leaves.at(name + ".bias"));
  };
  at::Tensor x = linear("stem.embed", patches_BTP) + leaves.at("stem.positions");
  for (const std::string block : {"block.0.", "block.1."}) {
    const at::Tensor qkv = linear(block + "qkv", norm(block + "attention_norm", x));
    const at::Tensor parts = qkv.view({x.size(0), x.size(1), 3, 2, -1}).permute({2, 0, 3, 1, 4});
    const at::Tensor out = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    x = x + linear(block + "out", out.transpose(1, 2).reshape(x.sizes()));
    x = x + linear(block + "down", at::gelu(linear(block + "up", norm(block + "mlp_norm", x))));
  }
  return linear("head.logits", norm("head.norm", x).mean(1));
}

TEST(Vit, HasTheGradientsOfPlainAutograd) {
  ASSERT_TRUE(train::PinArithmetic());
  Vit vit(SmallModel());
  train::FlatModel model;
  vit.Define(model);
  ASSERT_TRUE(model.Materialize());
  vit.Initialize(kSeed);
  const at::Tensor pixels = (at::arange(6 * 64, at::kFloat) * 0.37).sin().view({6, 8, 8, 1});
  const at::Tensor labels = at::arange(6).remainder(4);
  model.BeginPass();
  const auto loss = train::nn::CrossEntropy(vit.Forward(pixels), labels, 6);
  ASSERT_TRUE(train::RunBackward(loss.sum, 1));
  model.EndPass();

  std::map<std::string, at::Tensor> leaves;
  const at::Tensor patches =
      pixels.view({6, 2, 4, 2, 4}).permute({0, 1, 3, 2, 4}).reshape({6, 4, 16});
  const at::Tensor plain =
      at::cross_entropy_loss(PlainLogits(model, patches, leaves), labels, {}, at::Reduction::Sum);
  plain.backward();
  EXPECT_NEAR(loss.sum.item<double>(), plain.item<double>(), 1e-5);
  for (const auto& unit : model.units()) {
    for (const auto& parameter : unit->parameters()) {
      const at::Tensor expected = leaves.at(parameter->name).grad();
      const double distance = (parameter->gradient - expected).norm().item<double>();
      // The softmax of the loss is computed in fp64 here and in fp32 there.
      EXPECT_LE(distance, 1e-6 * expected.norm().item<double>() + 1e-7) << parameter->name;
    }
  }
}

}  // namespace
}  // namespace muster::recipes

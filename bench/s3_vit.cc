// Our side of S3: one rank of the vit recipe on pixels in memory. Reads "N" lines on stdin, trains
// N steps for each, and answers with a line: CPU seconds, wall seconds, then the loss of each step.
// With --initial, rank 0 writes the first parameters before it answers, so that the peer starts
// from them.
//
//   s3_vit --rank 0 --world 2 --arena FD --pixels FILE --labels FILE --batch 64 --patch 7 …

#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/clock.h"
#include "coll/group.h"
#include "train/arithmetic.h"
#include "train/backward.h"
#include "train/optim/adamw.h"
#include "train/strategy_data_parallel.h"
#include "vit/vit.h"

namespace muster {
namespace {

constexpr double kLearningRate = 1e-3;
constexpr std::uint32_t kVirtualShards = 8;
constexpr data::ImageShape kImage{.height = 28, .width = 28, .channels = 1};

struct Options {
  std::map<std::string, std::string> text;
  std::int64_t Number(const std::string& name, std::int64_t otherwise) const {
    const auto found = text.find(name);
    return found == text.end() ? otherwise : std::stoll(found->second);
  }
  std::string Text(const std::string& name) const {
    const auto found = text.find(name);
    return found == text.end() ? std::string() : found->second;
  }
};

std::vector<std::uint8_t> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double WallSeconds() {
  return std::chrono::duration<double>(MonotonicClock::now().time_since_epoch()).count();
}

recipes::VitOptions ModelOptions(const Options& options) {
  return {.image = kImage,
          .patch = options.Number("patch", 7),
          .width = options.Number("width", 64),
          .blocks = options.Number("blocks", 3),
          .heads = options.Number("heads", 4),
          .augmentation = {.crop_padding = 0, .flip = false}};
}

class RankRun {
 public:
  RankRun(const Options& options, coll::Group& group)
      : pixels_(ReadFile(options.Text("pixels"))),
        labels_(ReadFile(options.Text("labels"))),
        initial_(options.Text("initial")),
        group_(group),
        passes_(options.Text("mode") == "canonical" ? kVirtualShards / group.world() : 1),
        rows_(static_cast<std::size_t>(options.Number("batch", 64)) / passes_),
        overlap_(options.Text("overlap") == "thread" ? train::Overlap::kOnThread
                                                     : train::Overlap::kInline),
        task_(ModelOptions(options)) {}

  Status Run() {
    if (labels_.empty()) return Error(Code::kInvalid, "no labels");
    task_.Define(model_);
    MUSTER_TRY(model_.Materialize([this](std::size_t bytes) -> void* {
      const auto memory = group_.Alloc(bytes);
      return memory ? memory->data() : nullptr;
    }));
    task_.Initialize(1);
    if (group_.rank().value() == 0) WriteInitial();
    auto optimizer = MUSTER_TRY(train::AdamW::Create(model_, {}));
    train::DataParallel strategy(model_, group_, {.passes = passes_, .overlap = overlap_});
    for (std::uint64_t steps = 0; std::cin >> steps;) {
      MUSTER_TRY(group_.Barrier("turn"));
      MUSTER_TRY(Turn(strategy, optimizer, steps));
    }
    return Ok();
  }

 private:
  Status Turn(train::DataParallel& strategy, train::AdamW& optimizer, std::uint64_t steps) {
    const double cpu = CpuSeconds();
    const double wall = WallSeconds();
    std::vector<double> losses;
    for (std::uint64_t i = 0; i < steps; ++i) {
      losses.push_back(MUSTER_TRY(Step(strategy)));
      MUSTER_TRY(optimizer.Step(kLearningRate));
      ++step_;
    }
    std::printf("%.6f %.6f", CpuSeconds() - cpu, WallSeconds() - wall);
    for (const double loss : losses) std::printf(" %.9g", loss);
    std::printf("\n");
    std::fflush(stdout);
    return Ok();
  }

  Result<double> Step(train::DataParallel& strategy) {
    MUSTER_TRY(strategy.BeginStep(static_cast<double>(rows_ * passes_)));
    for (std::uint32_t pass = 0; pass < passes_; ++pass) {
      strategy.BeginPass();
      MUSTER_TRY(Pass(strategy, pass));
    }
    return strategy.FinishStep();
  }

  // Rank r of w takes rows [r·B, (r + 1)·B) of each global batch; the peer does the same.
  Status Pass(train::DataParallel& strategy, std::uint32_t pass) {
    const std::size_t share = rows_ * passes_;
    const std::size_t first =
        (step_ * group_.world() + group_.rank().value()) * share + pass * rows_;
    std::vector<std::uint64_t> ids;
    std::vector<std::int64_t> labels;
    std::vector<std::uint8_t> pixels;
    for (std::size_t i = 0; i < rows_; ++i) {
      const std::size_t row = (first + i) % labels_.size();
      ids.push_back(row);
      labels.push_back(labels_[row]);
      const auto begin = pixels_.begin() + static_cast<std::ptrdiff_t>(row * kImage.bytes());
      pixels.insert(pixels.end(), begin, begin + static_cast<std::ptrdiff_t>(kImage.bytes()));
    }
    const data::MicroShard shard{.index = pass,
                                 .valid = static_cast<std::uint32_t>(rows_),
                                 .rows = ids,
                                 .labels = labels,
                                 .pixels = pixels};
    return train::Guarded("step", [&]() -> Status {
      return strategy.Backward(
          task_.Loss({.shard = &shard, .image = kImage, .seed = 1, .step = step_}));
    });
  }

  // Raw fp32 in the order of the index beside it, "name length" a line.
  void WriteInitial() {
    if (initial_.empty()) return;
    std::ofstream values(initial_, std::ios::binary);
    std::ofstream index(initial_ + ".index");
    for (const auto& unit : model_.units()) {
      for (const auto& parameter : unit->parameters()) {
        index << parameter->name << ' ' << parameter->length << '\n';
        values.write(reinterpret_cast<const char*>(parameter->value.const_data_ptr<float>()),
                     static_cast<std::streamsize>(parameter->length * sizeof(float)));
      }
    }
  }

  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> labels_;
  std::string initial_;
  coll::Group& group_;
  std::uint32_t passes_;
  std::size_t rows_;
  train::Overlap overlap_;
  recipes::Vit task_;
  train::FlatModel model_;
  std::uint64_t step_ = 0;
};

Status RunRank(const Options& options) {
  MUSTER_TRY(train::PinArithmetic());
  auto group = MUSTER_TRY(
      coll::Group::Open({.rank = Rank{static_cast<std::uint32_t>(options.Number("rank", 0))},
                         .world = static_cast<std::uint32_t>(options.Number("world", 1)),
                         .arena_fd = static_cast<int>(options.Number("arena", -1))}));
  return RankRun(options, group).Run();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::Options options;
  for (int i = 1; i + 1 < argc; i += 2) options.text[std::string(argv[i]).substr(2)] = argv[i + 1];
  const muster::Status status = muster::RunRank(options);
  if (!status) std::fprintf(stderr, "s3_vit: %s\n", status.error().ToString().c_str());
  return status ? 0 : 1;
}

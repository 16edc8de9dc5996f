// Our side of S3: the vit recipe, data parallel, on pixels in memory. Forks the ranks, trains, and
// prints one JSON object: the loss of each step, and CPU and wall time of the steps behind the
// warm-up. With --initial it also writes the initial parameters, so that the peer starts from them.
//
//   s3_vit --pixels FILE --labels FILE --world 2 --steps 60 --warm-up 10 --batch 64 --patch 7 …

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
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

struct Pixels {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
};

std::vector<std::uint8_t> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What the ranks share with the parent.
struct Measured {
  std::int64_t cpu_us = 0;
  std::int64_t wall_us = 0;
  bool done = false;
  double losses[10'000] = {};
};

std::int64_t CpuMicros() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto micros = [](const timeval& t) { return t.tv_sec * 1'000'000 + t.tv_usec; };
  return micros(usage.ru_utime) + micros(usage.ru_stime);
}

std::int64_t NowMicros() { return MonotonicClock::now().time_since_epoch().count() / 1000; }

recipes::VitOptions ModelOptions(const Options& options) {
  return {.patch = options.Number("patch", 7),
          .width = options.Number("width", 64),
          .blocks = options.Number("blocks", 3),
          .heads = options.Number("heads", 4),
          .augmentation = {.crop_padding = 0, .flip = false}};
}

class RankRun {
 public:
  RankRun(const Options& options, const Pixels& data, coll::Group& group)
      : options_(options),
        data_(data),
        group_(group),
        world_(group.world()),
        canonical_(options.Text("mode") == "canonical"),
        passes_(canonical_ ? 8 / world_ : 1),
        rows_(static_cast<std::size_t>(options.Number("batch", 64)) / passes_),
        task_(ModelOptions(options)) {}

  Status Run(Measured& measured) {
    task_.Define(model_);
    MUSTER_TRY(model_.Materialize([this](std::size_t bytes) -> void* {
      const auto memory = group_.Alloc(bytes);
      return memory ? memory->data() : nullptr;
    }));
    task_.Initialize(1);
    if (group_.rank().value() == 0) WriteInitial();
    auto optimizer = MUSTER_TRY(train::AdamW::Create(model_, {}));
    const auto overlap =
        options_.Text("overlap") == "thread" ? train::Overlap::kOnThread : train::Overlap::kInline;
    train::DataParallel strategy(model_, group_, {.passes = passes_, .overlap = overlap});
    const std::int64_t steps = options_.Number("steps", 60);
    const std::int64_t warm_up = options_.Number("warm-up", 10);
    for (std::int64_t step = 0; step < steps; ++step) {
      if (step == warm_up) {
        MUSTER_TRY(group_.Barrier("start"));
        measured.cpu_us = CpuMicros();
        measured.wall_us = NowMicros();
      }
      measured.losses[step] = MUSTER_TRY(Step(strategy, step));
      optimizer.Step(kLearningRate);
    }
    measured.cpu_us = CpuMicros() - measured.cpu_us;
    measured.wall_us = NowMicros() - measured.wall_us;
    measured.done = true;
    return Ok();
  }

 private:
  static constexpr double kLearningRate = 1e-3;

  Result<double> Step(train::DataParallel& strategy, std::int64_t step) {
    MUSTER_TRY(strategy.BeginStep(static_cast<double>(rows_ * passes_)));
    for (std::uint32_t pass = 0; pass < passes_; ++pass) {
      strategy.BeginPass();
      MUSTER_TRY(Pass(strategy, step, pass));
    }
    return strategy.FinishStep();
  }

  // Rank r of w takes rows [r·B, (r + 1)·B) of each global batch; the peer does the same.
  Status Pass(train::DataParallel& strategy, std::int64_t step, std::uint32_t pass) {
    const std::size_t share = rows_ * passes_;
    const std::size_t first =
        (static_cast<std::size_t>(step) * world_ + group_.rank().value()) * share + pass * rows_;
    const std::size_t bytes = 28 * 28;
    const std::size_t count = data_.labels.size();
    std::vector<std::uint64_t> ids;
    std::vector<std::int64_t> labels;
    std::vector<std::uint8_t> pixels;
    for (std::size_t i = 0; i < rows_; ++i) {
      const std::size_t row = (first + i) % count;
      ids.push_back(row);
      labels.push_back(data_.labels[row]);
      pixels.insert(pixels.end(), data_.pixels.data() + row * bytes,
                    data_.pixels.data() + (row + 1) * bytes);
    }
    const data::MicroShard shard{.index = pass,
                                 .valid = static_cast<std::uint32_t>(rows_),
                                 .rows = ids,
                                 .labels = labels,
                                 .pixels = pixels};
    return train::Guarded("step", [&]() -> Status {
      return strategy.Backward(task_.Loss({.shard = &shard,
                                           .image = {28, 28, 1},
                                           .seed = 1,
                                           .step = static_cast<std::uint64_t>(step)}));
    });
  }

  // Raw fp32 in the order of the index beside it, "name length" a line.
  void WriteInitial() {
    const std::string path = options_.Text("initial");
    if (path.empty()) return;
    std::ofstream values(path, std::ios::binary);
    std::ofstream index(path + ".index");
    for (const auto& unit : model_.units()) {
      for (const auto& parameter : unit->parameters()) {
        index << parameter->name << ' ' << parameter->length << '\n';
        values.write(reinterpret_cast<const char*>(parameter->value.const_data_ptr<float>()),
                     static_cast<std::streamsize>(parameter->length * sizeof(float)));
      }
    }
  }

  const Options& options_;
  const Pixels& data_;
  coll::Group& group_;
  std::uint32_t world_;
  bool canonical_;
  std::uint32_t passes_;
  std::size_t rows_;
  recipes::Vit task_;
  train::FlatModel model_;
};

Status RunRank(const Options& options, const Pixels& data, Rank rank, int arena,
               Measured& measured) {
  MUSTER_TRY(train::PinArithmetic());
  auto group =
      MUSTER_TRY(coll::Group::Open({.rank = rank,
                                    .world = static_cast<std::uint32_t>(options.Number("world", 1)),
                                    .arena_fd = arena}));
  return RankRun(options, data, group).Run(measured);
}

int Report(const Options& options, const Measured* ranks) {
  const std::int64_t world = options.Number("world", 1);
  const std::int64_t steps = options.Number("steps", 60);
  const double samples = static_cast<double>((steps - options.Number("warm-up", 10)) * world *
                                             options.Number("batch", 64));
  std::int64_t cpu = 0;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    if (!ranks[rank].done) return 1;
    cpu += ranks[rank].cpu_us;
  }
  std::printf("{\"cpu_ms_per_sample\": %.6f, \"samples_per_second\": %.2f, \"losses\": [",
              static_cast<double>(cpu) / 1000 / samples,
              samples * 1e6 / static_cast<double>(ranks[0].wall_us));
  for (std::int64_t step = 0; step < steps; ++step) {
    std::printf("%s%.17g", step == 0 ? "" : ", ", ranks[0].losses[step]);
  }
  std::printf("]}\n");
  return 0;
}

int Main(const Options& options) {
  const Pixels data{ReadFile(options.Text("pixels")), ReadFile(options.Text("labels"))};
  const std::int64_t world = options.Number("world", 1);
  void* shared = mmap(nullptr, sizeof(Measured) * static_cast<std::size_t>(world),
                      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || data.labels.empty()) return 1;
  auto* ranks = static_cast<Measured*>(shared);
  int arena = -1;
  if (world > 1) {
    const auto made =
        coll::CreateArena(static_cast<std::uint32_t>(world), 64U << 20, Generation{1});
    if (!made) return 1;
    arena = *made;
  }
  for (std::int64_t rank = 0; rank < world; ++rank) {
    if (fork() != 0) continue;
    const Status status =
        RunRank(options, data, Rank{static_cast<std::uint32_t>(rank)}, arena, ranks[rank]);
    if (!status)
      std::fprintf(stderr, "rank %d: %s\n", int(rank), status.error().ToString().c_str());
    _exit(status ? 0 : 1);
  }
  bool fine = true;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    int status = 0;
    wait(&status);
    fine = fine && status == 0;
  }
  return fine ? Report(options, ranks) : 1;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::Options options;
  for (int i = 1; i + 1 < argc; i += 2) options.text[std::string(argv[i]).substr(2)] = argv[i + 1];
  return muster::Main(options);
}

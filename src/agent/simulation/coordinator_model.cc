#include "agent/simulation/coordinator_model.h"

#include <sys/socket.h>

#include <array>
#include <csignal>
#include <utility>

#include "os/signals.h"

namespace muster::agent::simulation {
namespace {

constexpr const char* kRunId = "5eed";

/// Writes a generation's number after a while.
class SlowWriter final : public GenerationWriter {
 public:
  SlowWriter(Ground& ground, OnWritten on_written)
      : ground_(ground), life_(ground.world.loop()), on_written_(std::move(on_written)) {}
  void Write(Generation generation) override {
    ground_.fate.Step();
    life_.After(ground_.world.Delay(milliseconds(1), milliseconds(400)),
                [this, generation] { on_written_(generation, Ok()); });
  }
  bool Stop(nanoseconds /*limit*/) override { return true; }

 private:
  Ground& ground_;
  Lifetime life_;
  OnWritten on_written_;
};

}  // namespace

/// It looks at the time before and behind all that it does, so each look may be its last; and what
/// it does takes time.
class CoordinatorModel::FatedClock final : public Clock {
 public:
  explicit FatedClock(Ground& ground) : ground_(ground) {}
  Instant Now() const override {
    ground_.fate.Step();
    if (ground_.slow_saves && ground_.world.Chance(0.1)) {
      ground_.world.clock().Advance(ground_.world.Delay({}, milliseconds(2)));
    }
    return ground_.world.Now();
  }
  WallTime Wall() const override { return ground_.world.clock().Wall(); }

 private:
  Ground& ground_;
};

CoordinatorModel::CoordinatorModel(Ground& ground, CoordinatorOptions options)
    : ground_(ground),
      life_(ground.world.loop()),
      options_(std::move(options)),
      clock_(std::make_unique<FatedClock>(ground)) {
  auto saved = SavedState::Create();
  if (saved) {
    saved_ = std::move(*saved);
    Begin();
  } else {
    ground_.world.Violate("no memory for the state: " + saved.error().ToString());
  }
}

CoordinatorModel::~CoordinatorModel() = default;

void CoordinatorModel::Begin() {
  World& world = ground_.world;
  std::array<int, 2> ends{};
  auto signals = os::SignalFd::Block(std::vector{SIGTERM, SIGINT});
  auto loop = os::EventLoop::Create(world.clock());
  if (!signals || !loop ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return world.Violate("no descriptors for a coordinator");
  supervisor_ = Fd(ends[1]);
  past_.state = saved_->Load();
  kept_.emplace(Fd(ends[0]), KeptFds(), &*saved_, past_);
  loop_ = std::move(*loop);
  RunGround own{.loop = loop_, .clock = clock_.get()};
  own.console = std::make_shared<Console>(
      ConsoleOptions{.out_fd = options_.said_fd, .err_fd = options_.said_fd}, world.clock());
  own.make_writer = [this](GenerationWriter::OnWritten on_written) {
    return std::make_unique<SlowWriter>(ground_, std::move(on_written));
  };
  own.make_routes = [this](net::ServerOptions options) -> Result<std::unique_ptr<net::HttpRoutes>> {
    return ground_.network.Serve(std::move(options));
  };
  if (options_.host != nullptr) {
    own.make_node = [this](OnReport on_report, const std::optional<NodePlace>& place) {
      return options_.host->Attach(std::move(on_report), place);
    };
  }
  ground_.fate.Revive();
  ground_.fate.Play([&] {
    auto run = RunLoop::Create(*options_.run, options_.folder, {.run_id = kRunId, .kept = &*kept_},
                               *std::move(signals), own);
    if (!run) return world.Violate("the run did not start: " + run.error().ToString());
    run_ = *std::move(run);
    run_->Begin();
  });
  if (ground_.fate.dead()) Bury();
}

void CoordinatorModel::Turn() {
  if (!run_) return;
  ground_.fate.Play([&] { static_cast<void>(loop_->RunOnce({})); });
  if (ground_.fate.dead()) Bury();
}

/// Another one comes in a moment. What the dead one had open is closed as the kernel does it.
void CoordinatorModel::Bury() {
  ground_.world.Note("the coordinator dies");
  ++past_.count;
  past_.death = "killed by SIGKILL";
  past_.died = ground_.world.Now();
  run_.reset();
  kept_.reset();
  loop_.reset();
  life_.After(ground_.world.Delay(milliseconds(1), milliseconds(500)), [this] {
    ground_.world.Note("another coordinator begins");
    Begin();
  });
}

Instant CoordinatorModel::Next() const { return run_ ? loop_->NextDue() : kNever; }

RunOutcome CoordinatorModel::End() { return run_->End(); }

}  // namespace muster::agent::simulation

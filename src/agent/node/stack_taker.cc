#include "agent/node/stack_taker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "agent/launch/command_writer.h"

namespace muster::agent {
namespace {

constexpr auto kLimit = std::chrono::seconds(8);  // it ends by itself sooner
constexpr std::string_view kTaken = "taken\n";
constexpr std::size_t kMostText = static_cast<std::size_t>(stacks::kMaxJson.count) + kTaken.size();

}  // namespace

void StackTaker::Take(const std::string& program, const std::vector<stacks::Process>& targets,
                      ShimClient& shim, OnSaid on_said) {
  Drop();
  targets_ = targets;
  on_said_ = std::move(on_said);
  if (targets_.empty()) return End("");
  if (const Status started = Start(program, shim); !started) {
    return End("muster-stacks could not be started: " + started.error().ToString());
  }
  limit_ = loop_.After(kLimit, [this] { End("muster-stacks did not end in time"); });
}

Status StackTaker::Start(const std::string& program, ShimClient& shim) {
  if (::access(program.c_str(), X_OK) < 0) return ErrnoError("find " + program, errno);
  std::vector<std::string> arguments = {"muster-stacks"};
  for (const stacks::Process& target : targets_) {
    arguments.push_back(fmt::format("{}:{}", target.rank, target.pid));
  }
  // Without our environment: elfutils would ask servers on the network for debug information.
  const Fd command = MUSTER_TRY(
      WriteCommand({.folder = "/", .program = program, .arguments = arguments, .environment = {}}));
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::array<int, 2> ends{};
  if (!null.valid() || ::pipe2(ends.data(), O_CLOEXEC) < 0) return ErrnoError("pipe", errno);
  pipe_ = Fd(ends[0]);
  const Fd write(ends[1]);
  ::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
  MUSTER_TRY(shim.StartHelper({command.get(), null.get(), write.get(), null.get(), -1, -1, {}}));
  watch_ = MUSTER_TRY(loop_.Watch(pipe_.get(), EPOLLIN, [this](std::uint32_t) { Read(); }));
  return Ok();
}

void StackTaker::Read() {
  std::array<char, 16 << 10> bytes{};
  for (;;) {
    const ssize_t n = ::read(pipe_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) return End("muster-stacks ended without an answer");
    text_.append(bytes.data(), static_cast<std::size_t>(n));
    if (text_.size() > kMostText) return End("muster-stacks said too much");
  }
  if (!taken_ && text_.starts_with(kTaken)) {
    taken_ = true;
    const OnSaid say = on_said_;  // what it leads to may begin another call
    say({.taken = true, .json = {}});
  }
}

/// With what came, or with `why` for each process.
void StackTaker::End(const std::string& why) {
  const std::string_view json =
      text_.starts_with(kTaken) ? std::string_view(text_).substr(kTaken.size()) : "";
  std::string said;
  if (stacks::FromJson(json)) {
    said = json;
  } else {
    for (stacks::Process& target : targets_) target.missing = why;
    said = stacks::ToJson(targets_);
  }
  const OnSaid say = std::exchange(on_said_, {});
  Drop();
  say({.taken = false, .json = std::move(said)});
}

void StackTaker::Drop() {
  if (watch_) loop_.Remove(*watch_);
  if (limit_) loop_.Remove(*limit_);
  watch_.reset();
  limit_.reset();
  pipe_.Reset();
  text_.clear();
  taken_ = false;
  on_said_ = {};
}

}  // namespace muster::agent

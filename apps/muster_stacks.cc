// muster-stacks RANK:PID …: where every thread of these processes stands, for muster run, which
// has its shim start it. Writes "taken" once the processes may be killed, then one line of JSON
// (docs/formats/stacks.md).
#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "agent/stacks/take/take.h"
#include "base/error.h"

namespace {

constexpr auto kCopyLimit = std::chrono::milliseconds(700);
constexpr auto kNameLimit = std::chrono::seconds(5);
constexpr int kUsage = 2;

}  // namespace

int main(int argc, char** argv) {
  namespace stacks = muster::agent::stacks;
  const auto targets = stacks::ParseTargets({argv + 1, argv + argc});
  if (argc < 2 || !targets) {
    fmt::print(stderr, "muster-stacks: {}\nhint: muster run starts it: muster-stacks RANK:PID …\n",
               targets ? "no process named" : targets.error().message());
    return kUsage;
  }
  const auto copied = stacks::Copy(*targets, kCopyLimit);
  fmt::print("taken\n");
  std::fflush(stdout);
  fmt::print("{}", stacks::ToJson(stacks::Name(copied, kNameLimit)));
  return std::fflush(stdout) == 0 ? 0 : 1;
}

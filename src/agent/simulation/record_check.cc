#include "agent/simulation/record_check.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <tuple>

#include "spec/env.h"

namespace muster::agent::simulation {
namespace {

constexpr Bytes kMost = 256_MiB;

/// "n2" of "lost with node n2: the connection closed", of "lost with the shim of node n2, killed by
/// SIGKILL"; empty for causes that begin otherwise.
std::string NodeIn(const std::string& cause, std::string_view before, char after) {
  if (!cause.starts_with(before)) return {};
  return cause.substr(before.size(), cause.find(after) - before.size());
}

bool IsTrue(const std::string& cause, Rank rank, Generation generation, const Truth& truth,
            const RecordCheck& what) {
  if (const std::string node = NodeIn(cause, "lost with node ", ':'); !node.empty()) {
    return what.rough || truth.WasDisturbed(node);
  }
  if (const std::string node = NodeIn(cause, "lost with the shim of node ", ','); !node.empty()) {
    return truth.LostShim(node);
  }
  if (cause.starts_with("could not be started")) return what.starts_fail;
  // Who gave up because of another rank is named when nobody else can be.
  if (cause == fmt::format("ended with exit code {}", spec::kFollowerExit)) return true;
  return truth.Died(rank, generation);
}

}  // namespace

void CheckRecord(FileSystem& files, const std::string& path, const Truth& truth,
                 const RecordCheck& what, World& world) {
  const auto text = files.ReadAll(path, kMost);
  if (!text) return world.Violate("no record: " + text.error().ToString());
  std::set<std::tuple<std::string, Rank, Generation, int>> seen;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (!event.is_object()) return world.Violate("a line of the record is none: " + line);
    const std::string what_happened = event.value("event", "");
    // What the one before had written down and not saved is heard again.
    if (what_happened == "coordinator_back") seen.clear();
    const Rank rank(event.value("rank", 0U));
    const Generation generation(event.value("gen", std::uint64_t{0}));
    if (what_happened == "worker_started" || what_happened == "worker_exited") {
      const bool once = seen.emplace(what_happened, rank, generation, event.value("pid", 0)).second;
      // A worker that does not die is given up, and may die all the same.
      if (once || event.value("signal", "") == "SIGKILL") continue;
      world.Violate("heard twice: " + line);
    }
    if (what_happened != "fault") continue;
    const std::string cause = event.value("cause", "");
    if (IsTrue(cause, rank, generation, truth, what)) continue;
    world.Violate(fmt::format("rank {} did not die in generation {} as the run says: {}",
                              rank.value(), generation.value(), cause));
  }
}

}  // namespace muster::agent::simulation

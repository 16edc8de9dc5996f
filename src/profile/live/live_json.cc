#include <cmath>
#include <nlohmann/json.hpp>

#include "profile/live/live_text.h"

namespace muster::profile {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json OrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

std::string_view NameOf(LiveRun::State state) {
  switch (state) {
    case LiveRun::State::kRunning:
      return "RUNNING";
    case LiveRun::State::kSucceeded:
      return "SUCCEEDED";
    case LiveRun::State::kFailed:
      return "FAILED";
    case LiveRun::State::kLost:
      return "LOST";
  }
  return "";
}

Json RankJson(const LiveRun& run, std::uint32_t index) {
  const RankLive& rank = run.ranks()[index];
  const auto farthest = run.Farthest();
  return {{"rank", index},
          {"state", profile::NameOf(rank.state)},
          {"gen", rank.generation == 0 ? Json() : Json(rank.generation)},
          {"step", OrNull(rank.step)},
          {"step_s", OrNull(rank.StepSeconds())},
          {"lag", rank.step && farthest ? Json(*farthest - *rank.step) : Json()},
          {"loss", std::isfinite(rank.loss) ? Json(rank.loss) : Json()},
          {"exit", rank.note.empty() ? Json() : Json(rank.note)}};
}

}  // namespace

std::string TopJson(const LiveRun& run, const std::deque<Happening>& happened) {
  Json ranks = Json::array();
  for (std::uint32_t rank = 0; rank < run.ranks().size(); ++rank) {
    ranks.push_back(RankJson(run, rank));
  }
  Json happenings = Json::array();
  for (const Happening& happening : happened) {
    happenings.push_back({{"t_ns", happening.t_ns}, {"what", happening.text}});
  }
  const Json document = {{"id", run.facts().id},           {"name", run.facts().name},
                         {"state", NameOf(run.state())},   {"generation", run.generation()},
                         {"step", OrNull(run.Farthest())}, {"checkpoint", OrNull(run.checkpoint())},
                         {"ranks", std::move(ranks)},      {"happened", std::move(happenings)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster::profile

#include "net/router.h"

#include <fmt/format.h>

#include <optional>

#include "base/text.h"

namespace muster::net {
namespace {

constexpr std::size_t kMostShown = 200;

std::vector<std::string> SegmentsOf(std::string_view path) {
  std::vector<std::string> segments;
  path.remove_prefix(1);
  for (;;) {
    const std::size_t end = path.find('/');
    segments.emplace_back(path.substr(0, end));
    if (end == std::string_view::npos) return segments;
    path.remove_prefix(end + 1);
  }
}

bool IsName(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

/// How many literals agree, or nothing when the path does not fit.
std::optional<std::size_t> Literals(const std::vector<std::string>& pattern,
                                    const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return std::nullopt;
  std::size_t literals = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (IsName(pattern[i]) ? path[i].empty() : pattern[i] != path[i]) return std::nullopt;
    literals += IsName(pattern[i]) ? 0 : 1;
  }
  return literals;
}

}  // namespace

std::size_t RouteTable::Add(Method method, std::string_view pattern) {
  MUSTER_CHECK(pattern.starts_with('/'));
  Route route{method, SegmentsOf(pattern)};
  for (const Route& other : routes_) {
    MUSTER_CHECK(other.method != method || other.segments != route.segments);
  }
  routes_.push_back(std::move(route));
  return routes_.size() - 1;
}

Result<RouteTable::Match> RouteTable::Find(Method method, std::string_view path) const {
  std::optional<std::size_t> best;
  std::size_t most = 0;
  std::string others;
  const std::vector<std::string> segments =
      path.starts_with('/') ? SegmentsOf(path) : std::vector<std::string>{};
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    const auto literals = Literals(routes_[i].segments, segments);
    if (!literals) continue;
    const bool takes = routes_[i].method == method ||
                       (method == Method::kHead && routes_[i].method == Method::kGet);
    if (!takes) {
      others += (others.empty() ? "" : ", ") + std::string(NameOf(routes_[i].method));
    } else if (!best || *literals > most) {
      best = i;
      most = *literals;
    }
  }
  const std::string shown = CutText(PlainLine(path.substr(0, 2 * kMostShown)), kMostShown);
  if (!best && !others.empty()) {
    return Error(Code::kInvalid, fmt::format("{} does not take {}", shown, NameOf(method)),
                 "it takes " + others);
  }
  if (!best) return Error(Code::kNotFound, fmt::format("there is nothing at {}", shown));
  Match match{.route = *best};
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::string& segment = routes_[*best].segments[i];
    if (IsName(segment)) match.bound[segment.substr(1, segment.size() - 2)] = segments[i];
  }
  return match;
}

}  // namespace muster::net

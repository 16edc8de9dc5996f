#include <fmt/format.h>

#include <utility>

#include "base/duration.h"
#include "base/text.h"
#include "spec/document.h"
#include "spec/job.h"
#include "spec/units.h"

namespace muster::spec {
namespace {

Value Text(std::string_view text) {
  return {.kind = Value::Kind::kText, .text = std::string(text)};
}
Value Number(std::uint64_t number) {
  return {.kind = Value::Kind::kPlain, .text = std::to_string(number)};
}
Value NumberOrNone(const std::optional<std::uint32_t>& number) {
  return number ? Number(*number) : Text("none");
}
Value Flag(bool flag) { return {.kind = Value::Kind::kPlain, .text = flag ? "true" : "false"}; }
Value Time(Duration duration) { return Text(FormatExact(duration)); }
Value Time(const std::optional<Duration>& duration) {
  return duration ? Time(*duration) : Text("none");
}

/// Builds a map in the order of the calls.
class Map {
 public:
  Map& Add(std::string_view key, Value value) {
    value_.members.push_back({.key = std::string(key), .value = std::move(value)});
    return *this;
  }
  Value Take() { return std::move(value_); }

 private:
  Value value_{.kind = Value::Kind::kMap};
};

Value ToValue(const NodeRange& nodes) {
  if (nodes.min == nodes.max) return Number(nodes.min);
  return Map().Add("min", Number(nodes.min)).Add("max", Number(nodes.max)).Take();
}

Value ToValue(const RanksPerNode& ranks) {
  switch (ranks.kind) {
    case RanksPerNode::Kind::kCount:
      return Number(ranks.count);
    case RanksPerNode::Kind::kAuto:
      return Text("auto");
    case RanksPerNode::Kind::kCpu:
      return Text("cpu");
    case RanksPerNode::Kind::kGpu:
      return Text("gpu");
  }
  return Number(ranks.count);
}

Value ToValue(const Spares& spares) {
  return Map().Add("processes", Number(spares.processes)).Add("nodes", Number(spares.nodes)).Take();
}

Value Cores(std::uint64_t milli) {
  return milli % 1000 == 0 ? Number(milli / 1000) : Text(PrintCores(milli));
}

Value ToValue(const Resources& resources) {
  return Map()
      .Add("cpu", Cores(resources.cpu_milli))
      .Add("memory", Text(FormatExact(resources.memory)))
      .Add("gpu", Number(resources.gpu))
      .Take();
}

Value ToValue(const CheckpointPlan& checkpoint) {
  return Map().Add("dir", Text(checkpoint.dir)).Add("every", Number(checkpoint.every)).Take();
}

Value ToValue(const RestartPolicy& restart) {
  return Map()
      .Add("evalPeriod", Time(restart.eval_period))
      .Add("processRestarts", Number(restart.process_restarts))
      .Add("fullRestarts", Number(restart.full_restarts))
      .Add("total", NumberOrNone(restart.total))
      .Add("inPlace", Flag(restart.in_place))
      .Add("hangLimit", Time(restart.hang_limit))
      .Add("nodeLease", Time(restart.node_lease))
      .Take();
}

Value ToValue(const DataSource& source) {
  Map map;
  map.Add("uri", Text(source.uri));
  if (!source.at.empty()) map.Add("at", Text(source.at));
  return map.Add("stage", Flag(source.stage)).Take();
}

Value ToValue(const LogRule& rule) {
  Map map;
  map.Add("name", Text(rule.name))
      .Add("pattern", Text(rule.pattern))
      .Add("startWithin", Time(rule.start_within))
      .Add("every", Time(rule.every))
      .Add("threshold", Text(rule.threshold ? FormatThreshold(*rule.threshold) : "none"))
      .Add("points", Number(rule.points));
  if (!rule.stop.empty()) map.Add("stop", Text(rule.stop));
  return map.Add("fault", Flag(rule.fault))
      .Add("scope", Text(NameOf(rule.scope)))
      .Add("stream", Text(NameOf(rule.stream)))
      .Add("onNonNumber", Text(NameOf(rule.on_non_number)))
      .Add("action", Text(NameOf(rule.action)))
      .Take();
}

Value ToValue(const std::string& text) { return Text(text); }

template <typename Item>
Value ToList(const std::vector<Item>& items) {
  Value list{.kind = Value::Kind::kList};
  for (const Item& item : items) list.items.push_back(ToValue(item));
  return list;
}

Value ToDocument(const Job& job) {
  Value spec = Map()
                   .Add("queue", Text(job.queue))
                   .Add("share", Text(job.share))
                   .Add("priority", Number(job.priority))
                   .Add("nodes", ToValue(job.nodes))
                   .Add("ranksPerNode", ToValue(job.ranks_per_node))
                   .Add("spares", ToValue(job.spares))
                   .Add("resources", ToValue(job.resources))
                   .Add("command", ToList(job.command))
                   .Add("timeLimit", Time(job.time_limit))
                   .Add("estimate", Time(job.estimate))
                   .Add("checkpoint", ToValue(job.checkpoint))
                   .Add("data", ToList(job.data))
                   .Add("restart", ToValue(job.restart))
                   .Add("logRules", ToList(job.log_rules))
                   .Take();
  return Map()
      .Add("apiVersion", Text("muster/v1"))
      .Add("kind", Text("Job"))
      .Add("metadata", Map().Add("name", Text(job.name)).Take())
      .Add("spec", std::move(spec))
      .Take();
}

/// Puts what `comment` says of its path behind each key; of maps it is asked for those inside.
template <typename Comment>
void Mark(Value& value, const std::string& path, const Comment& comment) {
  for (Member& member : value.members) {
    const std::string inner = path.empty() ? member.key : path + "." + member.key;
    if (member.value.kind != Value::Kind::kMap) member.comment = comment(inner);
    Mark(member.value, inner, comment);
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    Mark(value.items[i], fmt::format("{}[{}]", path, i), comment);
  }
}

}  // namespace

std::string PrintJobYaml(const Job& job) { return PrintYaml(ToDocument(job)); }

std::string PrintJobYaml(const ParsedJob& parsed) {
  Value document = ToDocument(parsed.job);
  Mark(document, "", [&](const std::string& path) {
    return std::string(parsed.given.contains(path) ? "" : "default");
  });
  return PrintYaml(document);
}

std::string PrintJobYaml(const Job& job, const std::map<std::string, std::string>& sources) {
  Value document = ToDocument(job);
  Mark(document, "", [&](const std::string& path) -> std::string {
    const auto found = sources.find(path);
    if (found != sources.end()) return "from " + PlainLine(found->second);
    // A range of nodes is two keys here, and came from one.
    const auto around = sources.find(path.substr(0, path.rfind('.')));
    if (around != sources.end()) return "from " + PlainLine(around->second);
    // The list itself says nothing that its entries do not.
    const auto inside = sources.lower_bound(path + "[");
    const bool inner = inside != sources.end() && inside->first.starts_with(path + "[");
    return path == "apiVersion" || path == "kind" || inner ? "" : "default";
  });
  return PrintYaml(document);
}

std::string PrintJobJson(const Job& job) { return PrintJson(ToDocument(job)); }

}  // namespace muster::spec

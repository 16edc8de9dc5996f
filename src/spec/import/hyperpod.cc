#include "spec/import/hyperpod.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "spec/import/fields.h"
#include "spec/import/pod.h"
#include "spec/import/run_policy.h"
#include "spec/job_check.h"

namespace muster::spec {
namespace {

using Fate = ImportedField::Fate;

constexpr std::string_view kApi = "sagemaker.amazonaws.com/v1";
constexpr std::string_view kKind = "HyperPodPyTorchJob";
constexpr std::string_view kQueueLabel = "kueue.x-k8s.io/queue-name";
constexpr std::string_view kTeam = "hyperpod-ns-";
constexpr std::string_view kServer = "the cluster's own records";
constexpr std::string_view kHint =
    "docs/reference/hyperpod.md lists every field; nothing was written";
constexpr std::uint64_t kMostReplicas = kMostNodes;

constexpr std::array<OtherField, 10> kMetadata = {{
    {"annotations", Fate::kNoMeaning, "a job has a name only"},
    {"creationTimestamp", Fate::kNoMeaning, kServer},
    {"deletionTimestamp", Fate::kNoMeaning, kServer},
    {"finalizers", Fate::kNoMeaning, kServer},
    {"generation", Fate::kNoMeaning, kServer},
    {"managedFields", Fate::kNoMeaning, kServer},
    {"ownerReferences", Fate::kNoMeaning, kServer},
    {"resourceVersion", Fate::kNoMeaning, kServer},
    {"selfLink", Fate::kNoMeaning, kServer},
    {"uid", Fate::kNoMeaning, kServer},
}};

constexpr std::array<OtherField, 4> kElastic = {{
    {"replicaIncrementStep", Fate::kNotYet, "any number of nodes from min to max is taken"},
    {"replicaDiscreteValues", Fate::kNotYet, "any number of nodes from min to max is taken"},
    {"scalingTimeoutInSeconds", Fate::kNotYet,
     "nodes that join are taken in at the next restart, which they do not cause"},
    {"faultyScaleDownTimeoutInSeconds", Fate::kNotYet,
     "without a spare a run goes on with fewer nodes as soon as one is lost"},
}};

bool SameWord(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// What elasticPolicy says of the nodes.
struct Elastic {
  std::optional<std::uint64_t> min;
  std::optional<std::uint64_t> max;
  const Value* from = nullptr;
};

class Importer {
 public:
  Importer(Import& import, const Value& document) : import_(import), document_(document) {}

  void Read() {
    Fields top(document_, "", import_);
    if (!top.valid() || !IsOurs(top)) return;
    if (const Value* metadata = top.Take("metadata")) Metadata(*metadata);
    if (const Value* status = top.Take("status"))
      import_.Note(Fate::kNoMeaning, *status, "status", std::string(kServer));
    const Value* spec = top.Take("spec");
    top.Finish();
    if (spec == nullptr) return import_.Refuse(document_, "spec", "'spec' is missing");
    Spec(*spec);
  }

 private:
  /// Nothing else is looked at in another kind of document.
  bool IsOurs(Fields& top) {
    const Value* version = top.Text("apiVersion");
    const Value* kind = top.Text("kind");
    const bool ours = version != nullptr && version->text == kApi && kind != nullptr &&
                      SameWord(kind->text, kKind);
    if (ours) {
      import_.Note(Fate::kNoMeaning, *version, "apiVersion", "apiVersion: muster/v1");
      import_.Note(Fate::kNoMeaning, *kind, "kind", "kind: Job");
      return true;
    }
    const Value& place = kind != nullptr ? *kind : version != nullptr ? *version : document_;
    import_.Refuse(
        place, "kind",
        fmt::format("this is {} of {}; {} of {} is read",
                    kind == nullptr ? "no kind" : "kind '" + ShortValue(*kind) + "'",
                    version == nullptr ? "no apiVersion" : "'" + ShortValue(*version) + "'", kKind,
                    kApi));
    return false;
  }

  void Metadata(const Value& value) {
    Fields metadata(value, "metadata", import_);
    if (!metadata.valid()) return;
    const Value* name = metadata.Text("name");
    const Value* stem = metadata.Text("generateName");
    if (name != nullptr) {
      Job().name = name->text;
      import_.Took(*name, "metadata.name", "metadata.name", Job().name);
    }
    if (stem != nullptr && name == nullptr) {
      Job().name = stem->text.substr(0, stem->text.find_last_not_of("-._") + 1);
      import_.Took(*stem, "metadata.generateName", "metadata.name", Job().name);
    } else if (stem != nullptr) {
      import_.Note(Fate::kNoMeaning, *stem, "metadata.generateName", "there is a name");
    }
    if (const Value* space = metadata.Text("namespace")) Namespace(*space);
    if (const Value* labels = metadata.Take("labels")) Labels(*labels);
    metadata.Others(kMetadata);
    metadata.Finish();
  }

  /// HyperPod makes one namespace for each team.
  void Namespace(const Value& space) {
    if (!space.text.starts_with(kTeam) || space.text.size() == kTeam.size()) {
      return import_.Note(Fate::kNoMeaning, space, "metadata.namespace",
                          "only hyperpod-ns-TEAM names a share");
    }
    Job().share = space.text.substr(kTeam.size());
    import_.Took(space, "metadata.namespace", "spec.share", Job().share);
  }

  void Labels(const Value& labels) {
    for (const Member& member : labels.members) {
      const std::string path = "metadata.labels." + member.key;
      if (member.key == kQueueLabel && IsScalar(member.value)) {
        Job().queue = member.value.text;
        import_.Took(member.value, path, "spec.queue", Job().queue);
      } else if (member.key == "kueue.x-k8s.io/priority-class") {
        import_.Note(Fate::kNotYet, member.value, path,
                     "there is no queue yet; spec.priority takes a number");
      } else {
        import_.Note(Fate::kNoMeaning, member.value, path, "a job has a name only");
      }
    }
  }

  void Spec(const Value& value) {
    Fields spec(value, "spec", import_);
    if (!spec.valid()) return;
    const Value* ranks = spec.Text("nprocPerNode");
    const Elastic elastic = ReadElastic(spec);
    const Value* replicas = spec.List("replicaSpecs");
    if (replicas == nullptr || replicas->items.empty()) {
      import_.Refuse(replicas == nullptr ? value : *replicas, "spec.replicaSpecs",
                     "'spec.replicaSpecs' is missing");
    } else {
      ReadReplicas(*replicas, elastic, ranks);
    }
    if (const Value* policy = spec.Take("runPolicy"))
      ReadRunPolicy(*policy, "spec.runPolicy", Job().nodes.max > 1, import_);
    spec.Finish();
  }

  Elastic ReadElastic(Fields& spec) {
    const Value* value = spec.Take("elasticPolicy");
    if (value == nullptr) return {};
    Elastic elastic{.min = {}, .max = {}, .from = value};
    Fields policy(*value, "spec.elasticPolicy", import_);
    if (!policy.valid()) return {};
    std::uint64_t number = 0;
    if (const Value* least = policy.Whole("minReplicas", kMostReplicas, number)) {
      elastic.min = number;
      import_.Note(Fate::kTaken, *least, policy.PathOf("minReplicas"), "spec.nodes.min");
    }
    if (const Value* most = policy.Whole("maxReplicas", kMostReplicas, number)) {
      elastic.max = number;
      import_.Note(Fate::kTaken, *most, policy.PathOf("maxReplicas"), "spec.nodes.max");
    }
    for (const std::string_view key :
         {"gracefulShutdownTimeoutInSeconds", "graceShutdownTimeoutInSeconds"}) {
      if (const Value* grace = policy.Whole(key, 1'000'000'000, number)) {
        const std::string seconds = std::to_string(number);
        import_.Note(Fate::kBeside, *grace, policy.PathOf(key), "muster run … --grace " + seconds);
        import_.Option("--grace", seconds);
      }
    }
    policy.Others(kElastic);
    policy.Finish();
    return elastic;
  }

  void ReadReplicas(const Value& list, const Elastic& elastic, const Value* ranks) {
    if (list.items.size() > 1) {
      return import_.Refuse(list.items[1], "spec.replicaSpecs[1]",
                            fmt::format("'spec.replicaSpecs' has {} entries; a job has one kind of "
                                        "node: put their replicas together, or make two jobs",
                                        list.items.size()));
    }
    const std::string path = "spec.replicaSpecs[0]";
    Fields replica(list.items[0], path, import_);
    if (!replica.valid()) return;
    if (const Value* name = replica.Text("name"))
      import_.Note(Fate::kNoMeaning, *name, path + ".name", "a job has one kind of node");
    std::uint64_t count = 1;
    const Value* replicas = replica.Whole("replicas", kMostReplicas, count);
    std::uint64_t most = 0;
    const Value* max = replica.Whole("maxReplicas", kMostReplicas, most);
    Nodes(replicas, count, max, most, elastic);
    std::uint64_t spares = 0;
    if (const Value* value = replica.Whole("spares", kMostReplicas, spares)) {
      Job().spares.nodes = static_cast<std::uint32_t>(spares);
      import_.Took(*value, path + ".spares", "spec.spares.nodes", std::to_string(spares));
    }
    const Value* template_ = replica.Take("template");
    replica.Finish();
    if (template_ == nullptr)
      return import_.Refuse(list.items[0], path, fmt::format("'{}.template' is missing", path));
    const PodSurroundings surroundings{.nodes = std::to_string(count),
                                       .ranks_per_node = ranks == nullptr ? "auto" : ranks->text};
    const LauncherShape shape = ReadPod(*template_, path + ".template", surroundings, import_);
    Ranks(ranks, shape);
    if (shape.nodes && replicas == nullptr && elastic.from == nullptr) Job().nodes = *shape.nodes;
  }

  void Nodes(const Value* replicas, std::uint64_t count, const Value* max, std::uint64_t most,
             const Elastic& elastic) {
    NodeRange& nodes = Job().nodes;
    nodes.min = static_cast<std::uint32_t>(elastic.min.value_or(count));
    nodes.max = static_cast<std::uint32_t>(elastic.max.value_or(max != nullptr ? most : count));
    const std::string shown = nodes.min == nodes.max
                                  ? std::to_string(nodes.min)
                                  : fmt::format("{{min: {}, max: {}}}", nodes.min, nodes.max);
    if (elastic.from != nullptr) {
      import_.Took(*elastic.from, "spec.elasticPolicy", "spec.nodes", shown);
      if (replicas != nullptr)
        import_.Note(Fate::kNotYet, *replicas, "spec.replicaSpecs[0].replicas",
                     "a run starts with as many nodes as there are, from min to max");
      if (max != nullptr)
        import_.Note(Fate::kNoMeaning, *max, "spec.replicaSpecs[0].maxReplicas",
                     "elasticPolicy says it");
    } else {
      if (replicas != nullptr)
        import_.Took(*replicas, "spec.replicaSpecs[0].replicas", "spec.nodes", shown);
      if (max != nullptr)
        import_.Took(*max, "spec.replicaSpecs[0].maxReplicas", "spec.nodes", shown);
    }
  }

  void Ranks(const Value* value, const LauncherShape& shape) {
    RanksPerNode& ranks = Job().ranks_per_node;
    ranks = {.kind = RanksPerNode::Kind::kAuto};
    if (value != nullptr) {
      using Kind = RanksPerNode::Kind;
      const auto count = ToWholeText(*value);
      if (count && *count <= kMostRanksPerNode) {
        ranks = {.kind = Kind::kCount, .count = static_cast<std::uint32_t>(*count)};
      } else if (value->text == "cpu" || value->text == "gpu") {
        ranks = {.kind = value->text == "cpu" ? Kind::kCpu : Kind::kGpu};
      } else if (value->text != "auto") {
        return import_.Refuse(*value, "spec.nprocPerNode",
                              fmt::format("'spec.nprocPerNode' takes auto, cpu, gpu or a number up "
                                          "to {}, found {}",
                                          kMostRanksPerNode, Describe(*value)));
      }
      if (shape.ranks && *shape.ranks != ranks) {
        import_.Note(Fate::kNoMeaning, *value, "spec.nprocPerNode",
                     "the launcher's --nproc-per-node says another number, and starts them");
      } else {
        import_.Took(*value, "spec.nprocPerNode", "spec.ranksPerNode", ShortValue(*value));
      }
    }
    if (shape.ranks) ranks = *shape.ranks;
  }

  spec::Job& Job() { return import_.out.job; }

  Import& import_;
  const Value& document_;
};

/// Fields in the order of the file, and of one place in the order in which they were met.
void SortFields(ImportedJob& imported) {
  std::vector<std::pair<Place, std::size_t>> order;
  for (std::size_t i = 0; i < imported.fields.size(); ++i)
    order.emplace_back(imported.fields[i].place, i);
  std::ranges::sort(order);
  std::vector<ImportedField> sorted;
  for (const auto& [place, index] : order) sorted.push_back(std::move(imported.fields[index]));
  imported.fields = std::move(sorted);
}

}  // namespace

Result<ImportedJob> ImportHyperPod(std::string_view text, std::string_view file,
                                   const std::vector<std::string>& entry_point) {
  const auto syntax = file.ends_with(".json") ? Syntax::kJson : Syntax::kYaml;
  auto document = ReadDocument(text, syntax, file, DocumentLimits{.bytes = kMaxJobBytes});
  if (!document) return std::move(document.error()).Hint(kHint);
  Import import;
  import.entry_point = entry_point;
  Importer(import, *document).Read();
  if (import.findings.empty()) {
    for (const JobFault& fault : CheckJob(import.out.job))
      import.findings.AddAt(fault.path, fault.message);
  }
  if (!import.findings.empty()) {
    const Error error = import.findings.ToError(file);
    return Error(error.code(), error.message(), std::string(kHint));
  }
  SortFields(import.out);
  return std::move(import.out);
}

}  // namespace muster::spec

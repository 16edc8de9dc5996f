#include "spec/import/pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "spec/import/container.h"

namespace muster::spec {
namespace {

using Fate = ImportedField::Fate;

constexpr std::string_view kPlacement =
    "muster run takes this host and the agents that join; start agents on the hosts that you mean";
constexpr std::string_view kRights = "workers have the rights of who calls muster run";
constexpr std::string_view kNetwork = "workers use the host's network and names";
constexpr std::string_view kPodOnly = "there are no pods";
constexpr std::string_view kPriority = "there is no queue yet; spec.priority takes a number";

constexpr std::array<OtherField, 35> kPodFields = {{
    {"affinity", Fate::kNoMeaning, kPlacement},
    {"nodeName", Fate::kNoMeaning, kPlacement},
    {"nodeSelector", Fate::kNoMeaning, kPlacement},
    {"tolerations", Fate::kNoMeaning, kPlacement},
    {"topologySpreadConstraints", Fate::kNoMeaning, kPlacement},
    {"schedulerName", Fate::kNoMeaning, kPlacement},
    {"schedulingGates", Fate::kNoMeaning, kPlacement},
    {"automountServiceAccountToken", Fate::kNoMeaning, kRights},
    {"imagePullSecrets", Fate::kNoMeaning, kRights},
    {"securityContext", Fate::kNoMeaning, kRights},
    {"serviceAccount", Fate::kNoMeaning, kRights},
    {"serviceAccountName", Fate::kNoMeaning, kRights},
    {"hostUsers", Fate::kNoMeaning, kRights},
    {"dnsConfig", Fate::kNoMeaning, kNetwork},
    {"dnsPolicy", Fate::kNoMeaning, kNetwork},
    {"hostAliases", Fate::kNoMeaning, kNetwork},
    {"hostNetwork", Fate::kNoMeaning, kNetwork},
    {"hostname", Fate::kNoMeaning, kNetwork},
    {"setHostnameAsFQDN", Fate::kNoMeaning, kNetwork},
    {"subdomain", Fate::kNoMeaning, kNetwork},
    {"hostIPC", Fate::kNoMeaning, "workers use the host's shared memory"},
    {"hostPID", Fate::kNoMeaning, "workers see the host's processes"},
    {"shareProcessNamespace", Fate::kNoMeaning, "workers see the host's processes"},
    {"activeDeadlineSeconds", Fate::kNoMeaning,
     "it ends a pod, not the job; runPolicy.activeDeadlineSeconds is spec.timeLimit"},
    {"enableServiceLinks", Fate::kNoMeaning, kPodOnly},
    {"os", Fate::kNoMeaning, kPodOnly},
    {"overhead", Fate::kNoMeaning, kPodOnly},
    {"readinessGates", Fate::kNoMeaning, kPodOnly},
    {"restartPolicy", Fate::kNoMeaning,
     "a worker that dies is started again by the budgets of spec.restart"},
    {"runtimeClassName", Fate::kNoMeaning, kPodOnly},
    {"preemptionPolicy", Fate::kNotYet, kPriority},
    {"priority", Fate::kNotYet, kPriority},
    {"priorityClassName", Fate::kNotYet, kPriority},
    {"resourceClaims", Fate::kNotYet, "only cpu, memory and GPUs are counted"},
    {"ephemeralContainers", Fate::kNoMeaning, kPodOnly},
}};

constexpr std::array<OtherField, 2> kTemplateFields = {{
    {"metadata", Fate::kNoMeaning, kPodOnly},
    {"status", Fate::kNoMeaning, kPodOnly},
}};

/// Volumes are named one by one: whether the program finds its data depends on them.
void ReadVolumes(Fields& pod, Import& import) {
  const Value* volumes = pod.List("volumes");
  if (volumes == nullptr) return;
  for (std::size_t i = 0; i < volumes->items.size(); ++i) {
    const Value& volume = volumes->items[i];
    std::string name = "it";
    std::string kind = "a volume";
    for (const Member& member : volume.members) {
      if (member.key == "name") {
        name = ShortValue(member.value);
      } else {
        kind = member.key;
      }
    }
    import.Note(Fate::kNotYet, volume, fmt::format("{}[{}]", pod.PathOf("volumes"), i),
                fmt::format("'{}' ({}) is not mounted: workers see this host's files", name, kind));
  }
}

void ReadInit(Fields& pod, Import& import) {
  const Value* init = pod.List("initContainers");
  if (init == nullptr) return;
  import.Note(Fate::kNotYet, *init, pod.PathOf("initContainers"),
              "nothing runs before the workers; do their work before muster run");
}

void ReadGrace(Fields& pod, Import& import) {
  std::uint64_t seconds = 0;
  const Value* value = pod.Whole("terminationGracePeriodSeconds", 1'000'000'000, seconds);
  if (value == nullptr) return;
  import.Note(Fate::kBeside, *value, pod.PathOf("terminationGracePeriodSeconds"),
              fmt::format("muster run … --grace {}", seconds));
  import.Option("--grace", std::to_string(seconds));
}

/// The one that starts a launcher, else the first.
std::size_t TrainingContainer(const std::vector<Value>& containers) {
  for (std::size_t i = 0; i < containers.size(); ++i) {
    for (const Member& member : containers[i].members) {
      if (member.key != "command" && member.key != "args") continue;
      for (const Value& word : member.value.items) {
        if (word.text.find("hyperpodrun") != std::string::npos ||
            word.text.find("torchrun") != std::string::npos) {
          return i;
        }
      }
    }
  }
  return 0;
}

LauncherShape ReadContainers(Fields& pod, const PodSurroundings& surroundings, const Value& place,
                             Import& import) {
  const std::string path = pod.PathOf("containers");
  const Value* list = pod.List("containers");
  if (list == nullptr || list->items.empty()) {
    import.Refuse(list == nullptr ? place : *list, path, fmt::format("'{}' is missing", path));
    return {};
  }
  const std::size_t training = TrainingContainer(list->items);
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    if (i == training) continue;
    import.Note(Fate::kNotYet, list->items[i], fmt::format("{}[{}]", path, i),
                "a job is one program: this container does not run");
  }
  return ReadContainer(list->items[training], fmt::format("{}[{}]", path, training), surroundings,
                       import);
}

}  // namespace

LauncherShape ReadPod(const Value& value, const std::string& path,
                      const PodSurroundings& surroundings, Import& import) {
  Fields top(value, path, import);
  top.Others(kTemplateFields);
  const Value* spec = top.Take("spec");
  top.Finish();
  if (spec == nullptr) {
    if (top.valid()) import.Refuse(value, path, fmt::format("'{}.spec' is missing", path));
    return {};
  }
  Fields pod(*spec, path + ".spec", import);
  if (!pod.valid()) return {};
  pod.Others(kPodFields);
  ReadVolumes(pod, import);
  ReadInit(pod, import);
  ReadGrace(pod, import);
  const LauncherShape shape = ReadContainers(pod, surroundings, *spec, import);
  pod.Finish();
  return shape;
}

}  // namespace muster::spec

#pragma once
// One container of a pod: its words, environment and resources. Internal to src/spec.

#include "spec/import/fields.h"
#include "spec/import/launcher.h"
#include "spec/import/pod.h"

namespace muster::spec {

LauncherShape ReadContainer(const Value& value, const std::string& path,
                            const PodSurroundings& surroundings, Import& import);

}  // namespace muster::spec

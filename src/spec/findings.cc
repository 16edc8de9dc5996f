#include <fmt/format.h>

#include <algorithm>

#include "spec/object_reader.h"

namespace muster::spec {
namespace {

constexpr std::size_t kMostReported = 20;

/// "a.b[0]" → "a.b" → "a" → "".
std::string Parent(const std::string& path) {
  const auto cut = path.find_last_of(".[");
  return cut == std::string::npos ? std::string() : path.substr(0, cut);
}

bool Within(const std::string& path, const std::string& around) {
  if (!path.starts_with(around)) return false;
  return around.empty() || path.size() == around.size() || path[around.size()] == '.' ||
         path[around.size()] == '[';
}

}  // namespace

void Findings::Add(Place place, std::string path, std::string message) {
  faults_.push_back({place, std::move(path), std::move(message)});
}

void Findings::AddAt(const std::string& path, std::string message) {
  for (const Fault& fault : faults_) {
    if (Within(fault.path, path) || (!fault.path.empty() && Within(path, fault.path))) return;
  }
  std::string around = path;
  auto found = places_.find(around);
  while (found == places_.end() && !around.empty()) {
    around = Parent(around);
    found = places_.find(around);
  }
  Add(found == places_.end() ? Place{1, 1} : found->second, path, std::move(message));
}

std::set<std::string> Findings::Given() const {
  std::set<std::string> given;
  for (const auto& [path, place] : places_) given.insert(path);
  return given;
}

Error Findings::ToError(std::string_view file) const {
  std::vector<const Fault*> ordered;
  for (const Fault& fault : faults_) ordered.push_back(&fault);
  // Faults of one place stay in the order in which they were found.
  std::sort(ordered.begin(), ordered.end(), [](const Fault* a, const Fault* b) {
    return a->place == b->place ? a < b : a->place < b->place;
  });
  std::string message;
  for (std::size_t i = 0; i < ordered.size() && i < kMostReported; ++i) {
    if (i > 0) message += '\n';
    message += AtPlace(file, ordered[i]->place, ordered[i]->message);
  }
  if (ordered.size() > kMostReported) {
    message += fmt::format("\n{}: and {} more", file, ordered.size() - kMostReported);
  }
  return Error(Code::kInvalid, std::move(message),
               "docs/reference/job-file.md lists every key; 'muster explain FILE' checks a file");
}

}  // namespace muster::spec

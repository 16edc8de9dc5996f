#include "agent/simulation/world.h"

#include <fmt/format.h>

#include <utility>

namespace muster::agent::simulation {
namespace {

constexpr std::size_t kNotes = 150;

std::uint64_t HashOf(const std::string& text) {
  std::uint64_t hash = 0;
  for (const char byte : text) hash = hash * 1099511628211ULL + static_cast<unsigned char>(byte);
  return hash;
}

}  // namespace

World::World(std::uint64_t seed)
    : begin_(clock_.Now()), loop_(*os::EventLoop::Create(clock_)), random_(Mix(seed, 0x51u)) {}

nanoseconds World::Delay(nanoseconds least, nanoseconds most) {
  const double uniform = random_.Uniform();
  const double part = uniform * uniform * uniform;
  return least +
         nanoseconds(static_cast<std::int64_t>(static_cast<double>((most - least).count()) * part));
}

void World::Note(const std::string& what) {
  digest_ = Mix(digest_, HashOf(what), static_cast<std::uint64_t>(Passed().count()));
  notes_.push_back(
      fmt::format("{:10.4f} {}", std::chrono::duration<double>(Passed()).count(), what));
  if (notes_.size() > kNotes) notes_.pop_front();
}

void World::Violate(const std::string& what) {
  Note("VIOLATED: " + what);
  if (violation_) return;
  violation_ = what;
  loop_->Stop();
}

std::string World::Story() const {
  std::string text;
  for (const std::string& note : notes_) text += note + "\n";
  return text;
}

}  // namespace muster::agent::simulation

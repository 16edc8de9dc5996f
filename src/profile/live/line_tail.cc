#include "profile/live/line_tail.h"

namespace muster::profile {
namespace {

constexpr Bytes kAtOnce = 256_KiB;

}  // namespace

void LineTail::Feed(std::string_view bytes, const std::function<void(std::string_view)>& use) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto part = bytes.substr(0, end);
    if (held_.size() + part.size() > kMaxLineBytes) skipping_ = true;
    if (skipping_) {
      held_.clear();
    } else {
      held_ += part;
    }
    if (end == std::string_view::npos) return;
    if (!skipping_) use(held_);
    skipping_ = false;
    held_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void LineTail::Poll(const RunFiles& files, const std::function<void(std::string_view)>& use) {
  const auto sight = files.Look(path_);
  if (!sight || sight->size == offset_) return;
  const auto most = static_cast<std::uint64_t>(most_.count);
  const bool replaced = sight->size < offset_;
  if (replaced) offset_ = 0;
  if (replaced || sight->size - offset_ > most) {
    held_.clear();
    skipping_ = sight->size - offset_ > most;
  }
  if (skipping_ && sight->size - offset_ > most) offset_ = sight->size - most;
  while (offset_ < sight->size) {
    const auto bytes = files.ReadAt(path_, offset_, kAtOnce);
    if (!bytes || bytes->empty()) return;
    offset_ += bytes->size();
    Feed(*bytes, use);
  }
}

}  // namespace muster::profile

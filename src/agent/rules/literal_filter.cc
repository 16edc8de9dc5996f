#include "agent/rules/literal_filter.h"

#include "base/result.h"

namespace muster::agent::rules {

LiteralFilter::LiteralFilter(const std::vector<std::string>& texts) {
  std::size_t states = 1;
  for (const std::string& text : texts) {
    const auto head = std::string_view(text).substr(0, kMostBytes);
    states += head.size();
    for (const char c : head) {
      std::uint8_t& known = class_of_[static_cast<unsigned char>(c)];
      // All 256 bytes would need a class more than fits; patterns have ASCII literals only.
      if (known == 0 && classes_ < 255) known = static_cast<std::uint8_t>(classes_++);
    }
  }
  MUSTER_CHECK(states <= UINT16_MAX);
  next_.assign(classes_, 0);
  ends_.resize(1);
  for (std::uint32_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty()) Insert(std::string_view(texts[i]).substr(0, kMostBytes), i);
  }
  Complete();
}

void LiteralFilter::Insert(std::string_view text, std::uint32_t number) {
  State state = 0;
  for (const char c : text) {
    const std::size_t edge = state * classes_ + class_of_[static_cast<unsigned char>(c)];
    if (next_[edge] == 0) {
      next_[edge] = static_cast<State>(ends_.size());
      ends_.emplace_back();
      next_.resize(next_.size() + classes_, 0);
    }
    state = next_[edge];
  }
  ends_[state].push_back(number);
}

/// Breadth first: where a byte leads that continues no text is where it leads from the longest
/// proper suffix.
void LiteralFilter::Complete() {
  std::vector<State> suffix(ends_.size(), 0);
  std::vector<State> queue;
  for (std::size_t c = 0; c < classes_; ++c) {
    if (next_[c] != 0) queue.push_back(next_[c]);
  }
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const State state = queue[i];
    const std::vector<std::uint32_t>& inherited = ends_[suffix[state]];
    ends_[state].insert(ends_[state].end(), inherited.begin(), inherited.end());
    for (std::size_t c = 0; c < classes_; ++c) {
      State& edge = next_[state * classes_ + c];
      const State fallback = next_[suffix[state] * classes_ + c];
      if (edge == 0) {
        edge = fallback;
      } else {
        suffix[edge] = fallback;
        queue.push_back(edge);
      }
    }
  }
  for (const auto& ends : ends_) ends_any_.push_back(ends.empty() ? 0 : 1);
}

void LiteralFilter::Find(std::string_view line, std::vector<std::uint8_t>& found) const {
  const State* const next = next_.data();
  std::size_t state = 0;
  for (const char c : line) {
    state = next[state * classes_ + class_of_[static_cast<unsigned char>(c)]];
    if (ends_any_[state] == 0) continue;
    for (const std::uint32_t number : ends_[state]) found[number] = 1;
  }
}

}  // namespace muster::agent::rules

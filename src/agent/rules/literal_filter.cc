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
  MUSTER_CHECK(states * classes_ < kEnds);
  next_.assign(classes_, 0);
  ends_.resize(1);
  for (std::uint32_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty()) Insert(std::string_view(texts[i]).substr(0, kMostBytes), i);
  }
  Complete();
  MarkEnds();
}

void LiteralFilter::Insert(std::string_view text, std::uint32_t number) {
  Row row = 0;
  for (const char c : text) {
    const std::size_t edge = row + class_of_[static_cast<unsigned char>(c)];
    if (next_[edge] == 0) {
      next_[edge] = static_cast<Row>(next_.size());
      ends_.emplace_back();
      next_.resize(next_.size() + classes_, 0);
    }
    row = next_[edge];
  }
  ends_[row / classes_].push_back(number);
}

/// Breadth first: where a byte leads that continues no text is where it leads from the longest
/// proper suffix.
void LiteralFilter::Complete() {
  std::vector<Row> suffix(ends_.size(), 0);
  std::vector<Row> queue;
  for (Row c = 0; c < classes_; ++c) {
    if (next_[c] != 0) queue.push_back(next_[c]);
  }
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const Row row = queue[i];
    const Row shorter = suffix[row / classes_];
    std::vector<std::uint32_t>& ends = ends_[row / classes_];
    const std::vector<std::uint32_t>& inherited = ends_[shorter / classes_];
    ends.insert(ends.end(), inherited.begin(), inherited.end());
    for (Row c = 0; c < classes_; ++c) {
      Row& edge = next_[row + c];
      if (edge == 0) {
        edge = next_[shorter + c];
      } else {
        suffix[edge / classes_] = next_[shorter + c];
        queue.push_back(edge);
      }
    }
  }
}

void LiteralFilter::MarkEnds() {
  for (Row& edge : next_) {
    if (!ends_[edge / classes_].empty()) edge |= kEnds;
  }
}

void LiteralFilter::Find(std::string_view line, std::vector<std::uint8_t>& found) const {
  const Row* const next = next_.data();
  Row row = 0;
  for (const char c : line) {
    row = next[row + class_of_[static_cast<unsigned char>(c)]];
    if ((row & kEnds) == 0) continue;
    row &= ~kEnds;
    for (const std::uint32_t number : ends_[row / classes_]) found[number] = 1;
  }
}

}  // namespace muster::agent::rules

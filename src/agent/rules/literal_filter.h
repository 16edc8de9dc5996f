#pragma once
// Finds which of many texts are in a line, in one pass over its bytes, a table look-up each
// (Aho and Corasick 1975): what a rule's pattern cannot match without, so that most lines cost most
// rules nothing. Exact; bytes of every kind. Immutable after its making.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent::rules {

class LiteralFilter {
 public:
  /// More than enough to tell lines apart; of a longer text its first bytes count.
  static constexpr std::size_t kMostBytes = 32;

  /// Text i has number i; an empty one is in every line, and Find does not report it.
  explicit LiteralFilter(const std::vector<std::string>& texts);

  /// Sets `found[i]` for each text in the line; the others stay as they are.
  void Find(std::string_view line, std::vector<std::uint8_t>& found) const;

 private:
  /// Where a state's row begins in `next_`; with kEnds, texts end there.
  using Row = std::uint32_t;
  static constexpr Row kEnds = Row{1} << 31;
  void Insert(std::string_view text, std::uint32_t number);
  void Complete();
  void MarkEnds();

  std::array<std::uint8_t, 256> class_of_{};  ///< of a byte; 0: in no text
  Row classes_ = 1;
  std::vector<Row> next_;                         ///< row + class → row
  std::vector<std::vector<std::uint32_t>> ends_;  ///< by state: the texts that end there
};

}  // namespace muster::agent::rules

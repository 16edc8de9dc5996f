#include "agent/coordinator/same_words.h"

#include <algorithm>

namespace muster::agent {
namespace {

constexpr std::size_t kLeastHex = 6;

// Whatever the locale; letters beyond ASCII are none, and a digit behind them counts.
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsWord(char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::size_t EndOf(std::string_view text, std::size_t at, bool (*belongs)(char)) {
  while (at < text.size() && belongs(text[at])) ++at;
  return at;
}

bool IsHexNumber(std::string_view word) {
  const bool marked = word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X');
  if (marked) return std::ranges::all_of(word.substr(2), IsHex);
  return word.size() >= kLeastHex && std::ranges::all_of(word, IsHex) &&
         std::ranges::any_of(word, IsDigit) && !std::ranges::all_of(word, IsDigit);
}

/// Where the decimal number that begins at `at` ends: behind its last fraction and its exponent.
std::size_t EndOfNumber(std::string_view text, std::size_t at) {
  at = EndOf(text, at, IsDigit);
  while (at + 1 < text.size() && text[at] == '.' && IsDigit(text[at + 1])) {
    at = EndOf(text, at + 1, IsDigit);
  }
  if (at == text.size() || (text[at] != 'e' && text[at] != 'E')) return at;
  std::size_t exponent = at + 1;
  if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
  return exponent < text.size() && IsDigit(text[exponent]) ? EndOf(text, exponent, IsDigit) : at;
}

}  // namespace

std::string WithoutNumbers(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (!IsWord(text[at])) {
      out += text[at++];
      continue;
    }
    const std::size_t end = EndOf(text, at, IsWord);
    const std::string_view word = text.substr(at, end - at);
    if (IsHexNumber(word)) {
      out += '#';
      at = end;
    } else if (!IsDigit(word[0])) {
      out += word;
      at = end;
    } else {
      // With its unit, and the number behind that.
      while (at < text.size() && IsWord(text[at])) {
        if (IsDigit(text[at])) {
          at = EndOfNumber(text, at);
          out += '#';
        } else {
          out += text[at++];
        }
      }
    }
  }
  return out;
}

bool SameWords(std::string_view one, std::string_view other) {
  return one == other || WithoutNumbers(one) == WithoutNumbers(other);
}

}  // namespace muster::agent

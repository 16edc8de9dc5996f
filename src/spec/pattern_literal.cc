// The longest text that every match of a pattern holds, read off the pattern's outermost level:
// what is inside a group or a class, may be left out, or has an alternative does not count.
#include <cctype>

#include "spec/pattern.h"

namespace muster::spec {
namespace {

constexpr std::size_t kShortest = 2;

class LiteralReader {
 public:
  explicit LiteralReader(std::string_view pattern) : rest_(pattern) {}

  /// False: nothing certain can be said.
  bool Read() {
    while (!rest_.empty()) {
      if (!ReadOne()) return false;
    }
    EndRun();
    return true;
  }
  std::string longest() const { return longest_.size() < kShortest ? "" : longest_; }
  std::string head() const { return !head_ || head_->size() < kShortest ? "" : *head_; }

 private:
  char Next() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  bool ReadOne() {
    const char c = Next();
    switch (c) {
      case '|':
        return false;
      case '\\':
        return ReadEscape();
      case '[':
        EndRun();
        return SkipClass();
      case '(':
        return ReadGroup();
      case '*':
      case '?':
        DropLast();
        return true;
      case '{':
        DropLast();
        return SkipCount();
      case '+':
      case '.':
      case '^':
      case '$':
        EndRun();
        return true;
      default:
        run_ += c;
        return true;
    }
  }

  bool ReadEscape() {
    if (rest_.empty()) return false;
    const char c = Next();
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      run_ += c;
      return true;
    }
    EndRun();
    // Those that stand for one character or none; the others take what follows with them.
    return std::string_view("dDsSwWbBAztnrfva").find(c) != std::string_view::npos;
  }

  bool ReadGroup() {
    EndRun();
    if (rest_.starts_with('?') && !rest_.starts_with("?:") && !rest_.starts_with("?P<")) {
      return false;  // flags may change what follows the group as well
    }
    for (int depth = 1; depth > 0;) {
      if (rest_.empty()) return false;
      const char c = Next();
      if (c == '\\') {
        if (rest_.empty() || Next() == 'Q') return false;
      } else if (c == '[') {
        if (!SkipClass()) return false;
      } else {
        depth += c == '(' ? 1 : (c == ')' ? -1 : 0);
      }
    }
    return true;
  }

  bool SkipClass() {
    if (rest_.starts_with('^')) Next();
    for (bool first = true;; first = false) {
      if (rest_.empty()) return false;
      if (rest_.starts_with("[:")) {
        const auto end = rest_.find(":]");
        if (end == std::string_view::npos) return false;
        rest_.remove_prefix(end + 2);
        continue;
      }
      const char c = Next();
      if (c == '\\') {
        if (rest_.empty() || Next() == 'Q') return false;
      } else if (c == ']' && !first) {
        return true;
      }
    }
  }

  bool SkipCount() {
    const auto end = rest_.find_first_not_of("0123456789,");
    if (end == std::string_view::npos || rest_[end] != '}') return false;
    rest_.remove_prefix(end + 1);
    return true;
  }

  /// The last character may be missing in a match.
  void DropLast() {
    if (!run_.empty()) run_.pop_back();
    EndRun();
  }

  void EndRun() {
    // The first run is the head: it ends at once where the pattern begins with something else.
    if (!head_) head_ = run_;
    if (run_.size() > longest_.size()) longest_ = run_;
    run_.clear();
  }

  std::string_view rest_;
  std::string run_;
  std::string longest_;
  std::optional<std::string> head_;
};

}  // namespace

std::string RequiredLiteral(std::string_view pattern) {
  LiteralReader reader(pattern);
  return reader.Read() ? reader.longest() : "";
}

std::string HeadLiteral(std::string_view pattern) {
  LiteralReader reader(pattern);
  return reader.Read() ? reader.head() : "";
}

}  // namespace muster::spec

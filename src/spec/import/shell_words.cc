#include "spec/import/shell_words.h"

#include <utility>

namespace muster::spec {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kBlanks = " \t\r";

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// One pass over the script; `Words` is empty-handed as soon as it meets what it does not know.
class Shell {
 public:
  Shell(std::string_view script, const Variables& variables)
      : text_(script), variables_(variables) {}

  std::optional<std::vector<std::string>> Words() {
    TrimEnd();
    while (at_ < text_.size()) {
      if (!Step()) return std::nullopt;
    }
    if (quote_ != 0) return std::nullopt;
    EndWord();
    if (!words_.empty() && words_.front() == "exec") words_.erase(words_.begin());
    if (words_.empty()) return std::nullopt;
    return std::move(words_);
  }

 private:
  void TrimEnd() {
    const auto begin = text_.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) {
      text_ = {};
      return;
    }
    text_ = text_.substr(begin, text_.find_last_not_of(" \t\r\n") + 1 - begin);
  }

  void EndWord() {
    if (std::exchange(in_word_, false)) words_.push_back(std::exchange(word_, {}));
  }

  void Add(char c) {
    word_ += c;
    in_word_ = true;
  }

  bool Step() {
    const char c = text_[at_++];
    if (quote_ == '\'') {
      if (c == '\'') {
        quote_ = 0;
      } else {
        Add(c);
      }
      return true;
    }
    if (c == '\\') return Escape();
    if (c == '$') return Variable();
    if (c == '"' || (c == '\'' && quote_ == 0)) {
      quote_ = quote_ == 0 ? c : '\0';
      in_word_ = true;
      return true;
    }
    if (quote_ == '"') {
      if (c == '`') return false;
      Add(c);
      return true;
    }
    if (kBlanks.find(c) != std::string_view::npos) {
      EndWord();
      return true;
    }
    if (std::string_view("\n;&|<>()`*?[]{}!#~").find(c) != std::string_view::npos) return false;
    Add(c);
    return true;
  }

  bool Escape() {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    if (c == '\n') return true;
    if (quote_ == '"' && std::string_view("$`\"\\").find(c) == std::string_view::npos) Add('\\');
    Add(c);
    return true;
  }

  bool Variable() {
    const bool braced = at_ < text_.size() && text_[at_] == '{';
    std::size_t end = at_ + (braced ? 1 : 0);
    const std::size_t begin = end;
    while (end < text_.size() && IsNameByte(text_[end])) ++end;
    const auto found = variables_.find(text_.substr(begin, end - begin));
    if (found == variables_.end()) return false;
    if (braced && (end == text_.size() || text_[end++] != '}')) return false;
    at_ = end;
    // Outside of quotes a shell would cut such a value into words.
    if (quote_ == 0 && found->second.find_first_of(" \t\n*?[") != std::string::npos) return false;
    for (const char c : found->second) Add(c);
    return true;
  }

  std::string_view text_;
  const Variables& variables_;
  std::size_t at_ = 0;
  char quote_ = 0;
  bool in_word_ = false;
  std::string word_;
  std::vector<std::string> words_;
};

}  // namespace

std::optional<std::vector<std::string>> SimpleCommand(std::string_view script,
                                                      const Variables& variables) {
  return Shell(script, variables).Words();
}

}  // namespace muster::spec

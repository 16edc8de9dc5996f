// The only file of src/spec that knows nlohmann-json. Its SAX events carry no places, so the text
// is fed through an iterator that counts what the lexer has consumed: a token starts at the first
// significant byte behind the end of the one before.
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "spec/document_builder.h"
#include "spec/document_readers.h"
#include "spec/yaml_words.h"

namespace muster::spec {
namespace {

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

/// Turns byte offsets that only grow into lines and columns.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  Place At(std::size_t offset) {
    for (; offset_ < offset && offset_ < text_.size(); ++offset_) {
      if (text_[offset_] == '\n') {
        ++line_;
        start_ = offset_ + 1;
      }
    }
    return {line_, static_cast<std::uint32_t>(offset - start_ + 1)};
  }

 private:
  std::string_view text_;
  std::size_t offset_ = 0;
  std::size_t start_ = 0;
  std::uint32_t line_ = 1;
};

class Events final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Events(std::string_view text, const char** reached, DocumentBuilder& builder)
      : text_(text), lines_(text), reached_(reached), builder_(builder) {}

  bool null() override { return builder_.Scalar(Value::Kind::kNull, Start(), ""); }
  bool boolean(bool value) override { return Plain(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return Plain(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Plain(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return Plain(text); }
  bool string(string_t& text) override {
    return builder_.Scalar(Value::Kind::kText, Start(), text);
  }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_object(std::size_t) override { return builder_.Begin(Value::Kind::kMap, Start()); }
  bool key(string_t& text) override { return builder_.Key(Start(), text); }
  bool end_object() override { return End(); }
  bool start_array(std::size_t) override { return builder_.Begin(Value::Kind::kList, Start()); }
  bool end_array() override { return End(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: what": ours says where.
    std::string_view what = error.what();
    if (const auto colon = what.find(": "); colon != std::string_view::npos) {
      what.remove_prefix(colon + 2);
    }
    const Place place = lines_.At(position == 0 ? 0 : position - 1);
    return builder_.Refuse(place, std::string(what) + Excerpt(text_, place));
  }

 private:
  bool Plain(std::string text) {
    return builder_.Scalar(Value::Kind::kPlain, Start(), std::move(text));
  }
  bool End() {
    Start();
    return builder_.End();
  }
  Place Start() {
    std::size_t start = consumed_;
    while (start < text_.size() &&
           std::string_view(" \t\r\n,:").find(text_[start]) != std::string_view::npos) {
      ++start;
    }
    consumed_ = static_cast<std::size_t>(*reached_ - text_.data());
    return lines_.At(start);
  }

  std::string_view text_;
  Lines lines_;
  const char** reached_;
  DocumentBuilder& builder_;
  std::size_t consumed_ = 0;
};

}  // namespace

Result<Value> ReadJson(std::string_view text, std::string_view file, const DocumentLimits& limits) {
  DocumentBuilder builder(file, limits);
  const char* reached = text.data();
  Events events(text, &reached, builder);
  const bool parsed =
      nlohmann::json::sax_parse(CountingIterator(text.data(), &reached),
                                CountingIterator(text.data() + text.size(), &reached), &events);
  if (builder.error()) return Error(*builder.error());
  if (!parsed) return Error(Code::kInvalid, AtPlace(file, {1, 1}, "not JSON"));
  return builder.Take();
}

}  // namespace muster::spec

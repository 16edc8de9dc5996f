#pragma once
// Builds a Value from the events of a YAML or JSON parser and enforces DocumentLimits while doing
// so, before the tree grows. Internal to src/spec. After a refusal every further event is ignored
// and `error()` says why.

#include <optional>
#include <string>
#include <vector>

#include "spec/document.h"

namespace muster::spec {

class DocumentBuilder {
 public:
  DocumentBuilder(std::string_view file, const DocumentLimits& limits)
      : file_(file), limits_(limits) {}

  /// Each is false when the document was refused; the parser should stop.
  bool Scalar(Value::Kind kind, Place place, std::string text);
  bool Begin(Value::Kind kind, Place place);
  bool End();
  bool Key(Place place, std::string text);
  /// A copy of a finished value, counted like one that is written out.
  bool Copy(const Value& value, Place place);
  bool Refuse(Place place, std::string_view message);

  /// The value finished last; valid until the next event.
  const Value& last() const { return *last_; }
  bool key_expected() const;
  std::size_t depth() const { return open_.size(); }
  bool started() const { return started_; }
  const std::optional<Error>& error() const { return error_; }
  Value Take() { return std::move(root_); }

 private:
  bool Count(std::size_t values, Place place);
  Value* Attach(Value value);

  std::string_view file_;
  DocumentLimits limits_;
  Value root_;
  bool started_ = false;
  std::size_t values_ = 0;
  std::vector<Value*> open_;
  const Value* last_ = nullptr;
  std::optional<Member> key_;
  std::optional<Error> error_;
};

}  // namespace muster::spec

#pragma once
// Reads the keys of one map of a foreign manifest and writes down what became of each. Unlike a job
// file's, its numbers may be in quotes, and null is the same as left out. Internal to src/spec; on
// the stack.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "spec/import/imported.h"
#include "spec/object_reader.h"

namespace muster::spec {

/// The work of one import: the job so far, the fates and the faults.
struct Import {
  ImportedJob out;
  Findings findings;
  std::vector<std::string> entry_point;  ///< of the image, as the user says it

  void Note(ImportedField::Fate fate, const Value& value, std::string path, std::string words);
  /// `key` of the job now is what the field said. `shown` is how it reads there.
  void Took(const Value& value, const std::string& path, const std::string& key,
            std::string_view shown);
  /// "--grace" and "120"; the last value of an option holds, and a switch has none.
  void Option(const std::string& name, const std::string& value);
  void Refuse(const Value& value, const std::string& path, std::string message) {
    findings.Add(value.place, path, std::move(message));
  }
};

/// A field that is only written down.
struct OtherField {
  std::string_view key;
  ImportedField::Fate fate;
  std::string_view why;
};

/// One line of at most 48 bytes: "8", "[a, b]", "3 entries".
std::string ShortValue(const Value& value);
bool IsScalar(const Value& value);
/// A whole number, in quotes or not.
std::optional<std::uint64_t> ToWholeText(const Value& value);

class Fields {
 public:
  Fields(const Value& value, std::string path, Import& import)
      : keys_(value, std::move(path), import.findings), import_(import) {}

  bool valid() const { return keys_.valid(); }
  std::string PathOf(std::string_view key) const { return keys_.PathOf(key); }
  /// Null when the key is missing or null.
  const Value* Take(std::string_view key);
  /// The value when it is a text; a finding when it is something else.
  const Value* Text(std::string_view key);
  /// A whole number up to `most`; a finding when it is something else.
  const Value* Whole(std::string_view key, std::uint64_t most, std::uint64_t& out);
  /// A list; a finding when it is something else.
  const Value* List(std::string_view key);
  void Expected(const Value& value, std::string_view key, std::string_view what) {
    keys_.Expected(value, key, what);
  }
  void Others(std::span<const OtherField> others);
  /// Refuses the keys that nobody asked for, with a near miss.
  void Finish() { keys_.Finish(); }

 private:
  ObjectReader keys_;
  Import& import_;
};

}  // namespace muster::spec

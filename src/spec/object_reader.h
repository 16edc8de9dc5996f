#pragma once
// Reads the keys of one map of a document into plain fields and collects what is wrong with them,
// so that a file's faults are reported together. A field keeps its default when its key is missing
// or faulty. Finish() refuses the keys that nobody asked for, with a near miss. Internal to
// src/spec; used on the stack.

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "spec/document.h"
#include "spec/job.h"

namespace muster::spec {

/// Everything found in one document. Paths are as a user would write them: "spec.data[0].at".
class Findings {
 public:
  void Add(Place place, std::string path, std::string message);
  /// A fault of `path`, at its place or that of the nearest enclosing value; dropped when something
  /// inside or around it was reported already.
  void AddAt(const std::string& path, std::string message);
  void Seen(const std::string& path, Place place) { places_.insert_or_assign(path, place); }

  bool empty() const { return faults_.empty(); }
  /// Every path that the document gave.
  std::set<std::string> Given() const;
  /// The faults in file order, a line each, at most 20.
  Error ToError(std::string_view file) const;

 private:
  struct Fault {
    Place place;
    std::string path;
    std::string message;
  };
  std::vector<Fault> faults_;
  std::map<std::string, Place> places_;
};

/// "the number 3", "a list", "nothing": what a value is, for "expected …, found …".
std::string Describe(const Value& value);

class ObjectReader {
 public:
  /// `path` is empty for the document itself. A value that is not a map is a finding, and every
  /// key is then missing.
  ObjectReader(const Value& value, std::string path, Findings& findings);

  bool valid() const { return map_ != nullptr; }
  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view key) const;

  void Text(std::string_view key, std::string& out);
  void Flag(std::string_view key, bool& out);
  void Whole(std::string_view key, std::uint32_t& out);
  void Whole(std::string_view key, std::uint64_t& out);
  /// Takes "none" too.
  void Whole(std::string_view key, std::optional<std::uint32_t>& out);
  void Time(std::string_view key, Duration& out);
  /// Takes "none" too.
  void Time(std::string_view key, std::optional<Duration>& out);
  void Size(std::string_view key, Bytes& out);
  void Cores(std::string_view key, std::uint64_t& milli);
  /// A list of scalars; numbers and booleans are taken as they are written.
  void Words(std::string_view key, std::vector<std::string>& out);
  /// A list; `read` is called with each item and its path.
  void List(std::string_view key,
            const std::function<void(const Value& item, const std::string& path)>& read);
  /// The value of a key, or nullptr; marks the key as known.
  const Value* Take(std::string_view key);
  void Expected(const Value& value, std::string_view key, std::string_view what);
  void Finish();

 private:
  std::optional<std::uint64_t> ReadWhole(std::string_view key, std::uint64_t most);

  const Value* map_ = nullptr;
  std::string path_;
  Findings& findings_;
  std::vector<std::string_view> known_;
};

/// A plain decimal number without sign; nothing when it is anything else or does not fit.
std::optional<std::uint64_t> ToWhole(const Value& value);

}  // namespace muster::spec

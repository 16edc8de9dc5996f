#pragma once
// Plain values as bytes and back, for another process of the same image: what the coordinator
// knows, for the one that follows it when it dies (supervisor.h). Nothing of it is a format: it
// never leaves the host nor outlives the run, so there is no version in it.
//
// What is trivially copyable is its bytes. Another type takes part with `template <typename A> void
// Fields(A& a, T& value)`, which calls `a` with the name and the value of each field; names are for
// other archives (wire/).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace muster::agent {

template <typename T>
concept Raw = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;

class ArchiveWriter {
 public:
  template <typename T>
  void operator()(const char*, T& value) {
    Put(value);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <Raw T>
  void Put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Put(const std::string& value) {
    Put(value.size());
    bytes_ += value;
  }
  template <typename T>
    requires(!Raw<std::optional<T>>)
  void Put(std::optional<T>& value) {
    Put(value.has_value());
    if (value) Put(*value);
  }
  template <typename T>
  void Put(std::vector<T>& values) {
    Put(values.size());
    for (T& value : values) Put(value);
  }
  template <typename T>
    requires(!Raw<T> && requires(ArchiveWriter& a, T& value) { Fields(a, value); })
  void Put(T& value) {
    Fields(*this, value);
  }

  std::string bytes_;
};

/// Reads what a writer of the same image wrote. Bytes that end too early leave values as they were,
/// and `whole` says so.
class ArchiveReader {
 public:
  explicit ArchiveReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  void operator()(const char*, T& value) {
    Get(value);
  }
  /// Everything that was asked for was there, and nothing is left.
  bool whole() const { return whole_ && rest_.empty(); }

 private:
  bool Has(std::size_t size) {
    whole_ = whole_ && size <= rest_.size();
    return whole_;
  }
  template <Raw T>
  void Get(T& value) {
    if (!Has(sizeof(value))) return;
    std::memcpy(&value, rest_.data(), sizeof(value));
    rest_.remove_prefix(sizeof(value));
  }
  std::size_t GetSize() {
    std::size_t size = 0;
    Get(size);
    return Has(size) ? size : 0;  // each of what is counted has a byte at least
  }
  void Get(std::string& value) {
    const std::size_t size = GetSize();
    value = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  template <typename T>
    requires(!Raw<std::optional<T>>)
  void Get(std::optional<T>& value) {
    bool has = false;
    Get(has);
    value.reset();
    if (has) Get(value.emplace());
  }
  template <typename T>
  void Get(std::vector<T>& values) {
    values.resize(GetSize());
    for (T& value : values) Get(value);
  }
  template <typename T>
    requires(!Raw<T> && requires(ArchiveReader& a, T& value) { Fields(a, value); })
  void Get(T& value) {
    Fields(*this, value);
  }

  std::string_view rest_;
  bool whole_ = true;
};

}  // namespace muster::agent

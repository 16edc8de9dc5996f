#pragma once
// A Result as bytes (archive.h): how a life tells what came of it through its supervisor.

#include <string>
#include <string_view>
#include <utility>

#include "agent/keep/archive.h"
#include "base/result.h"

namespace muster::agent {

/// T is Raw, a string or has Fields, and a default.
template <typename T>
std::string EncodeResult(Result<T> result) {
  bool is_error = !result.has_value();
  Code code = is_error ? result.error().code() : Code{};
  std::string message = is_error ? result.error().message() : "";
  std::string hint = is_error ? result.error().hint() : "";
  T value = is_error ? T{} : *std::move(result);
  ArchiveWriter writer;
  writer("is_error", is_error), writer("code", code), writer("message", message);
  writer("hint", hint), writer("value", value);
  return writer.Take();
}

template <typename T>
Result<T> DecodeResult(std::string_view bytes) {
  bool is_error = false;
  Code code{};
  std::string message, hint;
  T value{};
  ArchiveReader reader(bytes);
  reader("is_error", is_error), reader("code", code), reader("message", message);
  reader("hint", hint), reader("value", value);
  if (!reader.whole()) return Error(Code::kBug, "the process ended without a result");
  if (is_error) return Error(code, message, hint);
  return value;
}

}  // namespace muster::agent

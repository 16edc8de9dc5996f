#include "cli/data_labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file_system.h"
#include "base/text.h"

namespace muster::cli {
namespace {

/// An empty piece is kept, as a name that is missing would shift all behind it.
std::vector<std::string> Pieces(std::string_view text, char end) {
  std::vector<std::string> pieces;
  for (;;) {
    const auto at = text.find(end);
    pieces.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

/// One name a line; a last empty line is no name.
Result<std::vector<std::string>> ReadLines(const std::string& path) {
  std::vector<std::string> lines = Pieces(MUSTER_TRY(PosixFiles().ReadAll(path, 16_MiB)), '\n');
  for (std::string& line : lines) {
    if (line.ends_with('\r')) line.pop_back();
  }
  if (lines.back().empty()) lines.pop_back();
  if (!lines.empty()) return lines;
  return Error(Code::kInvalid, fmt::format("--labels-file {} is empty", path),
               "write a name a line");
}

}  // namespace

Result<std::vector<std::string>> LabelNames(const std::optional<std::string>& list,
                                            const std::string& file) {
  std::vector<std::string> names;
  if (list) names = Pieces(*list, ',');
  if (!file.empty()) names = MUSTER_TRY(ReadLines(file));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty() && IsUtf8(names[i])) continue;
    return Error(Code::kInvalid, fmt::format("label name {} of {}{} is {}", i + 1, names.size(),
                                             file.empty() ? "" : " in " + file,
                                             names[i].empty() ? "empty" : "not UTF-8"));
  }
  auto sorted = names;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice == sorted.end()) return names;
  return Error(Code::kInvalid, fmt::format("the label name '{}' stands twice", *twice));
}

}  // namespace muster::cli

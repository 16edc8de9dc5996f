#include "cli/pages.h"

#include <unistd.h>

#include <optional>

#include "cli/verb.h"

namespace muster::cli {
namespace {

constexpr std::string_view kFolder = "docs/";
constexpr std::string_view kEnding = ".md";

std::string_view ParentOfPath(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

bool BeginsWord(std::string_view text, std::size_t at) {
  return at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n' || text[at - 1] == '(';
}

std::optional<std::string> Find(std::string_view page, std::string_view program,
                                const std::function<bool(const std::string&)>& exists) {
  const std::string_view prefix = ParentOfPath(ParentOfPath(program));  // of PREFIX/bin/muster
  const std::string installed = std::string(prefix) + "/share/doc/muster/" + std::string(page);
  if (exists(installed)) return installed;
  const std::string_view sources =
      ParentOfPath(ParentOfPath(prefix));  // of build/PRESET/bin/muster
  const std::string original = std::string(sources) + "/" + std::string(page);
  if (!sources.empty() && exists(original)) return original;
  return std::nullopt;
}

}  // namespace

std::string WithPages(std::string_view text, std::string_view program,
                      const std::function<bool(const std::string&)>& exists) {
  std::string out;
  std::size_t told = 0;
  for (auto at = text.find(kFolder); at != std::string_view::npos;
       at = text.find(kFolder, at + 1)) {
    const auto dot = text.find(kEnding, at);
    if (dot == std::string_view::npos) break;
    const std::string_view page = text.substr(at, dot + kEnding.size() - at);
    if (!BeginsWord(text, at) || page.find_first_of(" \n") != std::string_view::npos) continue;
    const auto path = Find(page, program, exists);
    if (!path) continue;
    out.append(text.substr(told, at - told)).append(*path);
    told = at + page.size();
  }
  return out.append(text.substr(told));
}

std::string WithPages(std::string_view text) {
  return WithPages(text, ProgramPath(),
                   [](const std::string& path) { return ::access(path.c_str(), R_OK) == 0; });
}

}  // namespace muster::cli

#include "spec/import/imported.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace muster::spec {
namespace {

/// As a POSIX shell takes it, on one line.
std::string ShellWord(std::string_view text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./-+=:,@%").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

/// A comment may not end before its line does.
std::string Comment(std::string_view text) { return "# " + PlainLine(text) + "\n"; }

bool OnOneLine(std::string_view text) { return PlainLine(text) == text; }

std::string Exports(const ImportedJob& imported) {
  std::string text;
  for (const ImportedVariable& variable : imported.environment) {
    if (variable.secret || !OnOneLine(variable.value)) {
      text +=
          Comment(fmt::format("  export {}=…  (line {}; {})", variable.name, variable.place.line,
                              variable.secret ? "not shown" : "more than one line"));
    } else {
      text += Comment(fmt::format("  export {}={}", variable.name, ShellWord(variable.value)));
    }
  }
  return text;
}

}  // namespace

std::string_view NameOf(ImportedField::Fate fate) {
  switch (fate) {
    case ImportedField::Fate::kTaken:
      return "taken";
    case ImportedField::Fate::kBeside:
      return "beside";
    case ImportedField::Fate::kNoMeaning:
      return "no meaning";
    case ImportedField::Fate::kNotYet:
      return "not yet";
  }
  return "taken";
}

std::string PrintImported(const ImportedJob& imported, std::string_view from,
                          std::string_view file) {
  std::string text = Comment(fmt::format("From {}. To run it:", from));
  text += Exports(imported);
  if (!imported.folder.empty()) {
    text += Comment("  cd " + (OnOneLine(imported.folder) ? ShellWord(imported.folder) : "…"));
  }
  std::string run = fmt::format("  muster run {}", ShellWord(file));
  for (const std::string& option : imported.options) run += " " + ShellWord(option);
  return text + Comment(run) + PrintJobYaml(imported.job, imported.sources);
}

}  // namespace muster::spec

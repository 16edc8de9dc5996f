#pragma once
// Where the pages are that hints and help name: "docs/reference/job-file.md" is a path in the
// sources and below share/doc/muster of an installation, and neither is where the reader stands.
// Pure but for what `exists` asks.

#include <functional>
#include <string>
#include <string_view>

namespace muster::cli {

/// Every page of `text` ("docs/….md" at the begin of a word) with its whole path, where it is found
/// beside the installed `program`, or in the sources that it was built in; else as it was.
std::string WithPages(std::string_view text, std::string_view program,
                      const std::function<bool(const std::string&)>& exists);

/// The same, beside the program that runs.
std::string WithPages(std::string_view text);

}  // namespace muster::cli

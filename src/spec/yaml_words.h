#pragma once
// What yaml-cpp complains about, in the words of somebody who writes a job file. Pure.

#include <string>
#include <string_view>

#include "spec/document.h"

namespace muster::spec {

/// `complaint` is yaml-cpp's message about `place` in `text`.
std::string YamlWords(std::string_view complaint, std::string_view text, Place place);

/// Where the mistake is: yaml-cpp stops behind a tab in the indentation and means the tab.
Place PlaceOfFault(std::string_view text, Place place);

/// The line of a place for an error, with a mark below the column: "\n  5 |   nodes: [1\n…".
/// Empty when the text has no such line.
std::string Excerpt(std::string_view text, Place place);

}  // namespace muster::spec

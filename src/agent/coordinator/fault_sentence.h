#pragma once
// One sentence of the faults that struck before the last one was recovered from. Pure.

#include <string>
#include <string_view>

namespace muster::agent {

/// "A, then B"; "A, twice" and "A, 3 times" when the last one comes again; what is too long becomes
/// "several faults, at last B". `before` is "" or was made by this.
std::string WithFault(const std::string& before, const std::string& headline);
/// Whether `sentence` says no more than `headline`, be it several times.
bool IsOnly(std::string_view headline, std::string_view sentence);

}  // namespace muster::agent

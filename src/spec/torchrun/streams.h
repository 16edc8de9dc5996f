#pragma once
// Which ranks' stdout and stderr are shown on the console: what is left of torchrun's --redirects,
// --tee and --local-ranks-filter, since the log files hold every line anyway. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::spec::torchrun {

/// Bits: 1 is stdout, 2 stderr.
struct StreamChoice {
  unsigned all = 0;                         ///< of every rank that is not named
  std::map<std::uint32_t, unsigned> ranks;  ///< "0:3,1:1"

  unsigned Of(std::uint32_t rank) const;
  std::set<std::uint32_t> Named() const;
  /// As ParseStreams takes it; "" when nothing was chosen.
  std::string Text() const;
};

struct ShownStreams {
  StreamChoice redirected;       ///< goes to a file …
  StreamChoice teed;             ///< … and to the console all the same
  std::set<std::uint32_t> only;  ///< ranks; empty: all

  unsigned Of(std::uint32_t rank) const;
  bool Everything() const;
};

/// "0,2,5", as ParseRanks takes it.
std::string RanksText(const std::set<std::uint32_t>& ranks);

/// "0", "3", "0:3,1:1"; nothing for anything else.
std::optional<StreamChoice> ParseStreams(std::string_view text);
/// "0,2,5"; nothing for anything else.
std::optional<std::set<std::uint32_t>> ParseRanks(std::string_view text);

}  // namespace muster::spec::torchrun

#pragma once
// The time lost to faults, as docs/formats/report.md defines it: recovery is detect, stop and
// start, lost is recovery and replay. `muster run` counts it while it happens, the report works it
// out of the records; both say it in the same words. Values; pure.

#include <string>

namespace muster::profile {

struct LostSeconds {
  double detect = 0;
  double stop = 0;
  double start = 0;
  double replay = 0;
  /// What may be lost besides, at most: the work of a program that reports no steps, of which
  /// nobody knows what had been saved.
  double unknown = 0;
  double recovery() const { return detect + stop + start; }
  double total() const { return recovery() + replay; }
  double at_most() const { return total() + unknown; }
  bool exact() const { return unknown == 0; }
  void Add(const LostSeconds& other);
};

/// "3.23 s", or "between 90 ms and 102 s" where that is all that is known.
std::string LostInWords(const LostSeconds& lost);
/// "recovery 77 ms (detect 22 ms, stop 6 ms, start 49 ms), replay 3.15 s", and what is known of a
/// program that reports no steps.
std::string LostInParts(const LostSeconds& lost);

}  // namespace muster::profile

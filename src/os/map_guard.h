#pragma once
// Keeps the process alive when a page of a mapped file cannot be had, because somebody made the
// file shorter or its disk gives an error. The kernel raises SIGBUS then, in the thread that reads.
// The handler of this file finds the guarded mapping that holds the address, marks it as lost and
// puts pages of zeros in the place of all of it from there on; the reader goes on and asks:
//
//   read from the mapping, as much as one piece of work takes;
//   if (guard.lost()) throw all of that away;
//
// The mark is set before the first zero can be seen, in every thread. A SIGBUS anywhere else goes
// to whoever had the signal when the first guard was made: a crash still dumps core, and a
// sanitizer still reports. A file that is cut within its last page raises nothing, the kernel shows
// zeros; who maps files has to see to that (data/layout/mapped_file.h).
//
// The handler is installed once in a process, by the first guard, and stays; a forked child has it
// too. Any thread. It costs a reader one load.

#include <cstddef>
#include <optional>

namespace muster::os {

class MapGuard {
 public:
  MapGuard() = default;  ///< guards nothing
  /// Of a mapping that begins on a page. To be destroyed before it is unmapped.
  MapGuard(const void* begin, std::size_t bytes);
  MapGuard(MapGuard&& other) noexcept;
  MapGuard& operator=(MapGuard&& other) noexcept;
  ~MapGuard();

  /// Whether what was read up to now may be zeros that were never in the file.
  bool lost() const;
  /// Where in the mapping a page was first not to be had; nothing while none is lost.
  std::optional<std::size_t> lost_at() const;

  struct Slot;

 private:
  Slot* slot_ = nullptr;
};

}  // namespace muster::os

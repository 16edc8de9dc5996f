#pragma once
// Random ids from the kernel's generator, so that they neither collide nor can be guessed.
// Lower-case base 32 without i, l, o and u (Crockford's alphabet): safe in file names, URLs and on
// the phone. Where a test needs known ids, IdSource comes in as an argument.

#include <cstddef>
#include <span>
#include <string>

namespace muster {

class IdSource {
 public:
  virtual ~IdSource() = default;
  /// `length` characters of 5 random bits each.
  virtual std::string Next(std::size_t length) = 0;
};

/// getrandom(2). Any thread.
IdSource& SystemIds();

/// "aaaa…0001"-like ids in sequence, for tests. Single thread.
class FakeIds final : public IdSource {
 public:
  std::string Next(std::size_t length) override;

 private:
  std::size_t count_ = 0;
};

/// Fills `out` with random bytes good enough for secrets.
void FillRandom(std::span<std::byte> out);

}  // namespace muster

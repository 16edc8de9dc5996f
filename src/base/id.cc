#include "base/id.h"

#include <sys/random.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace muster {
namespace {

constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";
static_assert(kAlphabet.size() == 32);

class RandomIds final : public IdSource {
 public:
  std::string Next(std::size_t length) override {
    std::vector<std::byte> random(length);
    FillRandom(random);
    std::string id;
    for (const std::byte byte : random) id += kAlphabet[std::to_integer<std::size_t>(byte) % 32];
    return id;
  }
};

}  // namespace

void FillRandom(std::span<std::byte> out) {
  while (!out.empty()) {
    const auto n = ::getrandom(out.data(), out.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    // It cannot fail for a valid buffer; going on without randomness would be worse than ending.
    MUSTER_CHECK(n > 0);
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

IdSource& SystemIds() {
  static RandomIds ids;
  return ids;
}

std::string FakeIds::Next(std::size_t length) {
  const std::string number = std::to_string(++count_);
  MUSTER_CHECK(number.size() <= length);
  return std::string(length - number.size(), 'a') + number;
}

}  // namespace muster

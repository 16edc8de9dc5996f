#include "data/layout/checksum.h"

#include <xxhash.h>

#include <cstring>

#include "base/error.h"

namespace muster::data {

struct StreamDigest::State {
  XXH3_state_t* hash = XXH3_createState();
  State() { MUSTER_CHECK(hash != nullptr && XXH3_128bits_reset(hash) == XXH_OK); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(hash); }
};

StreamDigest::StreamDigest() : state_(std::make_unique<State>()) {}
StreamDigest::StreamDigest(StreamDigest&&) noexcept = default;
StreamDigest& StreamDigest::operator=(StreamDigest&&) noexcept = default;
StreamDigest::~StreamDigest() = default;

void StreamDigest::Add(ByteSpan data) {
  if (!data.empty()) XXH3_128bits_update(state_->hash, data.data(), data.size());
}

Digest StreamDigest::Finish() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_->hash));
  Digest digest;
  static_assert(sizeof canonical.digest == sizeof digest);
  std::memcpy(digest.data(), canonical.digest, sizeof digest);
  return digest;
}

}  // namespace muster::data

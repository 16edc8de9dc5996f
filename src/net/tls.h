#pragma once
// A server's own identity: a fresh key (ECDSA P-256) with a self-signed certificate, made at start,
// held in memory only and known to clients by its fingerprint. No authority is involved, so nothing
// but a pinned fingerprint makes it worth anything. OpenSSL; any thread.

#include <chrono>
#include <string>

#include "base/clock.h"
#include "net/auth.h"

namespace muster::net {

struct TlsIdentity {
  std::string key_pem;  ///< secret
  std::string certificate_pem;
  Fingerprint fingerprint;

  TlsIdentity() = default;
  TlsIdentity(const TlsIdentity&) = default;
  TlsIdentity& operator=(const TlsIdentity&) = default;
  ~TlsIdentity();  ///< wipes the key
};

/// Valid from a day before `now`, for clocks that go wrong, until `life` after it. `name` is what
/// the certificate calls its owner.
Result<TlsIdentity> MakeTlsIdentity(const std::string& name, WallTime now,
                                    std::chrono::hours life = std::chrono::hours(24 * 90));

}  // namespace muster::net

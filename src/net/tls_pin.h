#pragma once
// Checks in a TLS handshake that the server's certificate is the pinned one, in the place of any
// authority: before that the client has sent nothing but its hello. Internal to the client.

#include <optional>

#include "net/auth.h"

struct x509_store_ctx_st;

namespace muster::net {

class TlsPin {
 public:
  explicit TlsPin(const Fingerprint& wanted) : wanted_(wanted) {}

  /// Installs the check in an SSL_CTX; this object outlives the connections made with it.
  void InstallIn(void* ssl_context);
  const Fingerprint& wanted() const { return wanted_; }
  /// What the last server showed that was refused.
  const std::optional<Fingerprint>& refused() const { return refused_; }

 private:
  static int Verify(x509_store_ctx_st* chain, void* self);

  Fingerprint wanted_;
  std::optional<Fingerprint> refused_;
};

}  // namespace muster::net

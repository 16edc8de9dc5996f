#include "net/tls_pin.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <span>
#include <vector>

namespace muster::net {

void TlsPin::InstallIn(void* ssl_context) {
  auto* const context = static_cast<SSL_CTX*>(ssl_context);
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_cert_verify_callback(context, &TlsPin::Verify, this);
  // A resumed session or a renegotiation would be another way in than this check.
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
}

int TlsPin::Verify(X509_STORE_CTX* chain, void* self) {
  auto* const pin = static_cast<TlsPin*>(self);
  X509* const leaf = ::X509_STORE_CTX_get0_cert(chain);
  const int size = leaf == nullptr ? -1 : ::i2d_X509(leaf, nullptr);
  if (size > 0) {
    std::vector<unsigned char> der(static_cast<std::size_t>(size));
    unsigned char* end = der.data();
    ::i2d_X509(leaf, &end);
    const Fingerprint shown = Fingerprint::Of(std::as_bytes(std::span(der)));
    if (shown == pin->wanted_) {
      ::X509_STORE_CTX_set_error(chain, X509_V_OK);
      return 1;
    }
    pin->refused_ = shown;
  }
  ::X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

}  // namespace muster::net

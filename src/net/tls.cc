#include "net/tls.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/id.h"

namespace muster::net {
namespace {

template <auto free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<::EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<::X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<::X509_EXTENSION_free>>;
using Bio = std::unique_ptr<BIO, Freed<::BIO_free_all>>;

Error Failed(const char* what) {
  std::array<char, 256> why{};
  ::ERR_error_string_n(::ERR_get_error(), why.data(), why.size());
  return {Code::kBug, std::string(what) + ": " + why.data()};
}

bool SetTimes(X509* certificate, WallTime now, std::chrono::hours life) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
  const time_t from = seconds - std::chrono::seconds(std::chrono::hours(24)).count();
  const time_t until = seconds + std::chrono::seconds(life).count();
  return ::ASN1_TIME_set(::X509_getm_notBefore(certificate), from) != nullptr &&
         ::ASN1_TIME_set(::X509_getm_notAfter(certificate), until) != nullptr;
}

bool SetSerial(X509* certificate) {
  std::array<std::byte, 8> random{};
  FillRandom(random);
  std::uint64_t serial = 0;
  for (const std::byte byte : random) serial = serial << 8 | std::to_integer<std::uint64_t>(byte);
  return ::ASN1_INTEGER_set_uint64(::X509_get_serialNumber(certificate), serial >> 1 | 1) == 1;
}

bool SetNames(X509* certificate, const std::string& name) {
  X509_NAME* subject = ::X509_get_subject_name(certificate);
  const auto* text = reinterpret_cast<const unsigned char*>(name.data());
  if (::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text,
                                   static_cast<int>(name.size()), -1, 0) != 1) {
    return false;
  }
  if (::X509_set_issuer_name(certificate, subject) != 1) return false;
  const Extension names(
      ::X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1"));
  return names != nullptr && ::X509_add_ext(certificate, names.get(), -1) == 1;
}

Result<std::string> TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = ::BIO_get_mem_data(bio, &data);
  if (size <= 0) return Failed("write PEM");
  return std::string(data, static_cast<std::size_t>(size));
}

Result<Fingerprint> FingerprintOf(X509* certificate) {
  const int size = ::i2d_X509(certificate, nullptr);
  if (size <= 0) return Failed("encode the certificate");
  std::vector<unsigned char> der(static_cast<std::size_t>(size));
  unsigned char* end = der.data();
  ::i2d_X509(certificate, &end);
  return Fingerprint::Of(std::as_bytes(std::span(der)));
}

}  // namespace

TlsIdentity::~TlsIdentity() { ::OPENSSL_cleanse(key_pem.data(), key_pem.size()); }

Result<TlsIdentity> MakeTlsIdentity(const std::string& name, WallTime now,
                                    std::chrono::hours life) {
  const Key key(::EVP_EC_gen("P-256"));
  if (!key) return Failed("make a key");
  const Certificate certificate(::X509_new());
  if (!certificate || ::X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      !SetSerial(certificate.get()) || !SetTimes(certificate.get(), now, life) ||
      !SetNames(certificate.get(), name) || ::X509_set_pubkey(certificate.get(), key.get()) != 1 ||
      ::X509_sign(certificate.get(), key.get(), ::EVP_sha256()) <= 0) {
    return Failed("make a certificate");
  }
  // Secure memory is wiped when it is freed.
  const Bio key_text(::BIO_new(::BIO_s_secmem()));
  const Bio text(::BIO_new(::BIO_s_mem()));
  if (!key_text || !text ||
      ::PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                 nullptr) != 1 ||
      ::PEM_write_bio_X509(text.get(), certificate.get()) != 1) {
    return Failed("write PEM");
  }
  TlsIdentity identity;
  identity.key_pem = MUSTER_TRY(TextOf(key_text.get()));
  identity.certificate_pem = MUSTER_TRY(TextOf(text.get()));
  identity.fingerprint = MUSTER_TRY(FingerprintOf(certificate.get()));
  return identity;
}

}  // namespace muster::net

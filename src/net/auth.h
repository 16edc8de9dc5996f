#pragma once
// Secrets and identities of the transport. A JoinToken is 256 random bits that let an agent join;
// it lives in a file that only its owner can read, travels as base64url in the Authorization header
// and is compared in constant time. Nothing here prints it: it has no operator<<, and errors name
// files, never content. A Fingerprint is the SHA-256 of a certificate (DER), public, and pins a
// server. Values; any thread.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace muster::net {

class JoinToken {
 public:
  static constexpr std::size_t kBytes = 32;

  static JoinToken Random();
  /// 43 characters of base64url without padding. Invalid otherwise; the error holds none of them.
  static Result<JoinToken> Parse(std::string_view text);
  /// A file with one token and at most one newline. It must be a regular file of ours or of root
  /// that nobody else may read or write: Denied otherwise. Precondition: no token in it.
  static Result<JoinToken> ReadFile(const std::string& path);
  /// A new token in a new file of mode 0600. AlreadyExists when `path` is there.
  static Result<JoinToken> CreateFile(const std::string& path);

  JoinToken(const JoinToken&) = default;
  JoinToken& operator=(const JoinToken&) = default;
  ~JoinToken();

  /// For a request or a file, nothing else.
  std::string Reveal() const;
  /// In a time that does not depend on the content.
  bool Equals(const JoinToken& other) const;
  /// Of an Authorization header: "Bearer TOKEN".
  bool AdmitsHeader(std::string_view authorization) const;

 private:
  explicit JoinToken(const std::array<std::byte, kBytes>& bytes) : bytes_(bytes) {}
  std::array<std::byte, kBytes> bytes_;
};

class Fingerprint {
 public:
  static constexpr std::size_t kBytes = 32;

  /// Of a certificate's DER bytes.
  static Fingerprint Of(ByteSpan der);
  /// "sha256:" and 64 hex digits of either case; colons between pairs as openssl prints them.
  static Result<Fingerprint> Parse(std::string_view text);
  std::string ToString() const;  ///< "sha256:0a1b…", lower case
  bool operator==(const Fingerprint&) const = default;

 private:
  std::array<std::byte, kBytes> bytes_{};
};

}  // namespace muster::net

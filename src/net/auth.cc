#include "net/auth.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/durable.h"
#include "base/fd.h"
#include "base/file_system.h"
#include "base/id.h"

namespace muster::net {
namespace {

constexpr std::string_view kBase64Url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kTokenCharacters = 43;  // ceil(256 / 6)
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kFingerprintPrefix = "sha256:";
constexpr std::string_view kMake = "remove the file, so that a new token is made";

std::optional<unsigned> HexValue(char c) {
  if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  const std::size_t at = kHexDigits.find(c);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned>(at);
}

/// Opens without following a link, and without waiting for the other end of a FIFO.
Result<Fd> OpenPrivate(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return ErrnoError("open the token file " + path, errno);
  struct stat about{};
  if (::fstat(fd.get(), &about) < 0) return ErrnoError("look at the token file " + path, errno);
  if (!S_ISREG(about.st_mode)) {
    return Error(Code::kPrecondition, "the token file " + path + " is no regular file");
  }
  if (about.st_uid != ::geteuid() && about.st_uid != 0) {
    return Error(Code::kDenied, "the token file " + path + " belongs to somebody else");
  }
  if ((about.st_mode & 077) != 0) {
    return Error(Code::kDenied, "the token file " + path + " can be read or written by others",
                 "chmod 600 " + path + ", and make a new token if others may have read it");
  }
  return fd;
}

}  // namespace

JoinToken::~JoinToken() { ::OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

JoinToken JoinToken::Random() {
  std::array<std::byte, kBytes> bytes{};
  FillRandom(bytes);
  return JoinToken(bytes);
}

Result<JoinToken> JoinToken::Parse(std::string_view text) {
  const Error wrong(Code::kInvalid, "a token has 43 characters out of A–Z a–z 0–9 - _");
  if (text.size() != kTokenCharacters) return wrong;
  std::array<std::byte, kBytes> bytes{};
  std::uint32_t bits = 0;
  unsigned count = 0;
  std::size_t at = 0;
  for (const char c : text) {
    const std::size_t value = kBase64Url.find(c);
    if (value == std::string_view::npos) return wrong;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes[at++] = static_cast<std::byte>(bits >> count);
  }
  // 43 characters hold two bits more; another spelling of the same token is none.
  if ((bits & 3) != 0) return wrong;
  return JoinToken(bytes);
}

std::string JoinToken::Reveal() const {
  std::string text;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const std::byte byte : bytes_) {
    bits = bits << 8 | std::to_integer<std::uint32_t>(byte);
    count += 8;
    while (count >= 6) {
      count -= 6;
      text += kBase64Url[bits >> count & 63];
    }
  }
  text += kBase64Url[bits << (6 - count) & 63];
  return text;
}

bool JoinToken::Equals(const JoinToken& other) const {
  return ::CRYPTO_memcmp(bytes_.data(), other.bytes_.data(), kBytes) == 0;
}

bool JoinToken::AdmitsHeader(std::string_view authorization) const {
  constexpr std::string_view kScheme = "bearer ";  // RFC 7235: of any case
  if (authorization.size() < kScheme.size()) return false;
  const bool bearer = std::ranges::equal(
      authorization.substr(0, kScheme.size()), kScheme, [](char got, char wanted) {
        return got == wanted || (got >= 'A' && got <= 'Z' && got - 'A' + 'a' == wanted);
      });
  if (!bearer) return false;
  // Compared as text: reading the other side's characters by tables would take a time of its own.
  const std::string_view theirs = authorization.substr(kScheme.size());
  std::string ours = Reveal();
  const bool equal =
      theirs.size() == ours.size() && ::CRYPTO_memcmp(theirs.data(), ours.data(), ours.size()) == 0;
  ::OPENSSL_cleanse(ours.data(), ours.size());
  return equal;
}

Result<JoinToken> JoinToken::ReadFile(const std::string& path) {
  const Fd fd = MUSTER_TRY(OpenPrivate(path));
  std::array<char, 128> text{};
  const auto count = ::read(fd.get(), text.data(), text.size());
  if (count < 0) return ErrnoError("read the token file " + path, errno);
  std::string_view content(text.data(), static_cast<std::size_t>(count));
  if (content.ends_with('\n')) content.remove_suffix(1);
  auto token = JoinToken::Parse(content);
  ::OPENSSL_cleanse(text.data(), text.size());
  if (!token) {
    return Error(Code::kPrecondition, "there is no token in " + path, std::string(kMake));
  }
  return token;
}

Result<JoinToken> JoinToken::CreateFile(const std::string& path) {
  JoinToken token = Random();
  std::string text = token.Reveal() + "\n";
  const Status written = WriteNew(PosixFiles(), path, AsBytes(text), 0600);
  ::OPENSSL_cleanse(text.data(), text.size());
  if (!written) return Error(written.error()).Within("make the token file");
  MUSTER_TRY(PosixFiles().SyncDirectory(ParentOf(path)));
  return token;
}

Fingerprint Fingerprint::Of(ByteSpan der) {
  Fingerprint made;
  ::SHA256(reinterpret_cast<const unsigned char*>(der.data()), der.size(),
           reinterpret_cast<unsigned char*>(made.bytes_.data()));
  return made;
}

Result<Fingerprint> Fingerprint::Parse(std::string_view text) {
  const Error wrong(Code::kInvalid, "a fingerprint is 'sha256:' and 64 hex digits");
  if (!text.starts_with(kFingerprintPrefix)) return wrong;
  text.remove_prefix(kFingerprintPrefix.size());
  const std::size_t stride = text.size() == kBytes * 3 - 1 ? 3 : 2;
  if (text.size() != kBytes * stride - (stride - 2)) return wrong;
  Fingerprint made;
  for (std::size_t i = 0; i < kBytes; ++i) {
    const auto high = HexValue(text[i * stride]);
    const auto low = HexValue(text[i * stride + 1]);
    if (!high || !low) return wrong;
    if (stride == 3 && i + 1 < kBytes && text[i * stride + 2] != ':') return wrong;
    made.bytes_[i] = static_cast<std::byte>(*high << 4 | *low);
  }
  return made;
}

std::string Fingerprint::ToString() const {
  std::string text(kFingerprintPrefix);
  for (const std::byte byte : bytes_) {
    text += kHexDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kHexDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

}  // namespace muster::net

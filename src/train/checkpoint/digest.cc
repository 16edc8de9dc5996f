#include "train/checkpoint/digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <array>
#include <memory>

#include "train/checkpoint/tensors.h"

namespace muster::checkpoint {
namespace {

class Sha256 {
 public:
  static Result<Sha256> Create() {
    Sha256 hash;
    hash.context_.reset(EVP_MD_CTX_new());
    if (hash.context_ == nullptr ||
        EVP_DigestInit_ex(hash.context_.get(), EVP_sha256(), nullptr) != 1)
      return Error(Code::kUnavailable, "OpenSSL offers no SHA-256");
    return hash;
  }
  Status Add(ByteSpan data) {
    if (EVP_DigestUpdate(context_.get(), data.data(), data.size()) != 1)
      return Error(Code::kUnavailable, "OpenSSL failed in SHA-256");
    return Ok();
  }
  Result<std::string> Finish() {
    std::array<unsigned char, 32> sum{};
    if (EVP_DigestFinal_ex(context_.get(), sum.data(), nullptr) != 1)
      return Error(Code::kUnavailable, "OpenSSL failed in SHA-256");
    std::string text;
    for (const unsigned char byte : sum) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

/// "param\tblock.0.weight\tF32\t64,3\n": names hold no control characters, so no two tensors share
/// a line.
std::string LineOf(const TensorRef& tensor) {
  return fmt::format("{}\t{}\t{}\t{}\n", tensor.group, tensor.entry->name, NameOf(tensor.dtype),
                     fmt::join(tensor.entry->shape, ","));
}

}  // namespace

Result<std::string> Digest(Checkpoint& checkpoint, std::string_view group) {
  Sha256 hash = MUSTER_TRY(Sha256::Create());
  MUSTER_TRY(hash.Add(AsBytes("muster-digest/1\n")));
  for (const TensorRef& tensor : MUSTER_TRY(TensorsOf(checkpoint.manifest(), group))) {
    MUSTER_TRY(hash.Add(AsBytes(LineOf(tensor))));
    MUSTER_TRY(ForEachPiece(checkpoint, tensor, [&](ByteSpan piece) { return hash.Add(piece); }));
  }
  return hash.Finish();
}

}  // namespace muster::checkpoint

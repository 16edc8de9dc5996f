#pragma once
// The requests of PyTorch's TCPStore protocol (torch 2.13), read from a stream of bytes that anyone
// on this host may have sent: docs/formats/tcp-store.md. Values; single-threaded.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::agent {

/// The first byte of a request.
enum class StoreOp : std::uint8_t {
  kValidate = 0,
  kSet,
  kCompareSet,
  kGet,
  kAdd,
  kCheck,
  kWait,
  kNumKeys,
  kDelete,
  kAppend,
  kMultiGet,
  kMultiSet,
  kCancelWait,
  kPing,
  kQueuePush,
  kQueuePop,
  kQueueLength,
  kListKeys,
  kBarrier,
};

struct StoreRequest {
  StoreOp op = StoreOp::kValidate;
  std::vector<std::string> keys;
  std::vector<std::string> values;  ///< SET, APPEND, QUEUE_PUSH 1; COMPARE_SET 2; MULTI_SET a key
  std::int64_t number = 0;          ///< ADD, BARRIER; PING's 32 bits
};

inline constexpr std::size_t kMaxStoreKey = 8 << 10;
inline constexpr std::size_t kMaxStoreValue = 8 << 20;
inline constexpr std::size_t kMaxStoreKeys = 128 << 10;  ///< of one request

/// Cuts a client's bytes into requests.
class StoreRequestReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole request, or nothing yet. Invalid: this is not the protocol, or beyond its
  /// limits; nothing after it can be read.
  Result<std::optional<StoreRequest>> Next();

 private:
  std::string buffer_;
  std::size_t used_ = 0;    ///< bytes of `buffer_` that were requests already
  bool validated_ = false;  ///< a connection begins with the magic number, once
};

/// The pieces of replies.
void PutStoreNumber(std::string& out, std::uint64_t value);    ///< 64 bits, little-endian
void PutStoreBytes(std::string& out, std::string_view value);  ///< length first

}  // namespace muster::agent

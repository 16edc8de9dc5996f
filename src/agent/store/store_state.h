#pragma once
// What a TCPStore holds and who waits for what: a pure machine from requests to replies, so that
// torch's semantics can be tested against torch's own server without a socket. Keys, queues and
// barriers as docs/formats/tcp-store.md says. Owner: StoreServer.

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "agent/store/store_wire.h"
#include "base/strong_id.h"

namespace muster::agent {

using StoreClientId = StrongId<struct StoreClientTag, std::uint64_t>;

struct StoreReply {
  StoreClientId client;
  std::string bytes;
};

inline constexpr std::size_t kMaxStoreBytes = 256 << 20;  ///< of keys and values together

class StoreState {
 public:
  /// Replies in the order in which they are to be sent; other clients may get some. Invalid: a
  /// counter that holds no number; Exhausted: beyond kMaxStoreBytes. Nothing has changed then, and
  /// the client cannot be answered.
  Result<std::vector<StoreReply>> Apply(StoreClientId client, const StoreRequest& request);
  /// The client is gone and waits for nothing any more.
  void Forget(StoreClientId client);

  std::size_t bytes() const { return bytes_; }

 private:
  using Replies = std::vector<StoreReply>;

  Status Set(const std::string& key, std::string value, Replies& replies);
  Status MultiSet(const StoreRequest& request, Replies& replies);
  Result<std::string> MultiGet(const std::vector<std::string>& keys) const;
  bool Delete(const std::string& key);
  std::string ListKeys() const;
  Status CompareSet(StoreClientId client, const StoreRequest& request, Replies& replies);
  Result<std::int64_t> Add(const std::string& key, std::int64_t by, Replies& replies);
  Status Barrier(StoreClientId client, const StoreRequest& request, Replies& replies);
  Status Push(const StoreRequest& request, Replies& replies);
  void Pop(StoreClientId client, const std::string& key, Replies& replies);
  void Wait(StoreClientId client, const std::vector<std::string>& keys, Replies& replies);
  Status Reserve(std::size_t more) const;

  bool Has(const std::string& key) const;
  const std::string& Get(const std::string& key) const;
  /// Tells up to `most` of those that wait for this key, the first that came first.
  void Wake(const std::string& key, std::size_t most, Replies& replies);
  void StopWaiting(StoreClientId client);

  /// What a client that waits still lacks.
  struct Lacking {
    std::unordered_set<std::string> keys;
    std::string barrier;  ///< the key of the barrier that it is in, instead
  };

  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::deque<std::string>> queues_;  ///< none is empty
  std::unordered_map<StoreClientId, Lacking> lacking_;
  std::unordered_map<std::string, std::deque<StoreClientId>> waiting_;   ///< key → who, in order
  std::unordered_map<std::string, std::deque<StoreClientId>> barriers_;  ///< key → who is in it
  std::size_t bytes_ = 0;
};

}  // namespace muster::agent

#pragma once
// Serves PyTorch's TCPStore to the ranks of one generation, from muster run itself: no rank's death
// takes it along, and the next generation finds an empty store at a port of its own, so that nobody
// dials an address of the past. The protocol knows no passwords, so one host's job listens on
// 127.0.0.1 only; torchrun's store is as open. A client that breaks the protocol loses its
// connection and nothing else.
//
// Single-threaded, in the loop that it is given; it neither blocks nor waits. Life: Listen → the
// destructor closes every connection.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/store/store_state.h"
#include "agent/store/store_wire.h"
#include "base/fd.h"
#include "base/result.h"
#include "os/event_loop.h"

namespace muster::agent {

class StoreServer {
 public:
  /// On a port that is free, or on `port`, of the IPv4 address `host`. `loop` outlives the server.
  /// Denied, Exhausted, AlreadyExists (the port is taken) as of bind(2).
  static Result<std::unique_ptr<StoreServer>> Listen(os::EventLoop& loop, std::uint16_t port = 0,
                                                     const std::string& host = "127.0.0.1");
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();

  std::uint16_t port() const { return port_; }
  std::size_t clients() const { return clients_.size(); }

 private:
  struct Client {
    Fd socket;
    os::WatchId watch;
    StoreRequestReader reader;
    std::string out;       ///< not taken by the kernel yet
    std::size_t sent = 0;  ///< bytes of `out` that it took
    bool stalled = false;  ///< not read from until it takes what it asked for
  };

  StoreServer(os::EventLoop& loop, Fd socket, std::uint16_t port)
      : loop_(loop), socket_(std::move(socket)), port_(port) {}
  void Accept();
  void AcceptLater();
  void Serve(StoreClientId id, std::uint32_t events);
  // False: the connection is over.
  bool Read(Client& client);
  bool Answer(StoreClientId id);
  bool Send(Client& client);
  void Drop(StoreClientId id);

  os::EventLoop& loop_;
  Fd socket_;
  std::uint16_t port_;
  os::WatchId watch_;
  StoreState state_;
  std::unordered_map<StoreClientId, Client> clients_;
  std::uint64_t next_id_ = 1;
  std::optional<os::TimerId> accept_again_;  ///< while descriptors ran out
};

}  // namespace muster::agent

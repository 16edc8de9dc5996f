#pragma once
// How a worker outlives the death of another one: the socket between a worker and its host. When a
// rank dies, the host aborts the collectives of the survivors; each unwinds to its last step
// boundary, says so here and waits. It gets the number and the arena of the next generation and
// goes on, with its process, weights and place in the data; only the dead rank is started anew.
//
// One packet a message, SOCK_SEQPACKET, little endian; docs/formats/recovery-link.md is the layout.
// A program that never says Ready is not asked: it is stopped and started again. Both ends: one
// owner thread each.

#include <cstdint>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "base/strong_id.h"

namespace muster::os {

/// Where a worker stands that has unwound.
struct Quiesced {
  std::uint64_t applied = 0;  ///< the last optimizer step in its memory
  std::uint64_t durable = 0;  ///< the last one committed to storage
};

/// What it goes on with.
struct Commit {
  Generation generation;
  Fd arena;  ///< of the collectives
};

/// The worker's end.
class RecoveryLink {
 public:
  /// Of a worker without a host: it cannot be carried over.
  RecoveryLink() = default;
  explicit RecoveryLink(Fd socket) : socket_(std::move(socket)) {}

  bool connected() const { return socket_.valid(); }
  /// From here on this process can unwind. Without a host, nothing happens.
  Status Ready();
  /// Unwound: says so and waits for the next generation. Unavailable when the host does not want
  /// this process any more: it is to end.
  Result<Commit> Quiesce(const Quiesced& place);

 private:
  Fd socket_;
};

/// The host's end, of one worker process.
class RecoveryHost {
 public:
  struct Message {
    std::optional<Quiesced> quiesced;  ///< nothing: it is ready to be carried over
  };

  /// The host's end, and the descriptor for the worker.
  static Result<std::pair<RecoveryHost, Fd>> Create();
  /// Another process of ours held it before.
  static RecoveryHost Adopt(Fd socket) { return RecoveryHost(std::move(socket)); }

  int fd() const { return socket_.get(); }
  /// The next message, or nothing when none waits. Unavailable when the worker is gone, Invalid for
  /// what is no message: it is dropped.
  Result<std::optional<Message>> Receive();
  /// Never blocks: Unavailable when the worker is gone or does not read.
  Status Commit(Generation generation, int arena);

 private:
  explicit RecoveryHost(Fd socket) : socket_(std::move(socket)) {}
  Fd socket_;
};

}  // namespace muster::os

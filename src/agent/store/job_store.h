#pragma once
// The TCPStore of a job's newest generation, served by a process of its own (store_process.h), so
// that it outlives the one that steers the run; by that one itself where there is no such process
// or it died. Single owner thread.

#include <cstdint>
#include <memory>
#include <string>

#include "agent/store/store_server.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "os/event_loop.h"

namespace muster::agent {

class JobStore {
 public:
  /// `process`: the socket of a store process; may be invalid. The loop outlives the store.
  JobStore(os::EventLoop& loop, Fd process) : loop_(loop), process_(std::move(process)) {}

  /// An empty store for `generation` on a free port of `host`, in the place of the one before. One
  /// that the process has open for it already stays as it is. The value is its port.
  Result<std::uint16_t> Open(Generation generation, const std::string& host);
  /// Whoever still dials it meets nobody.
  void Close();

 private:
  os::EventLoop& loop_;
  Fd process_;
  std::unique_ptr<StoreServer> own_;
};

}  // namespace muster::agent

#pragma once
// A node of a job as its coordinator sees it: takes orders, gives reports (messages.h). The node of
// this process is a NodeRunner; one of another host is reached by messages on the wire. Owner: the
// coordinator's loop.

#include <chrono>
#include <functional>

#include "agent/node/messages.h"

namespace muster::agent {

/// Who lives so long behind SIGKILL is in the kernel (state D): nobody waits for it.
inline constexpr auto kDieLimit = std::chrono::seconds(5);

/// On the coordinator's loop thread; may come from within Send and Poll.
using OnReport = std::function<void(Report)>;

class Node {
 public:
  virtual ~Node() = default;
  /// Never blocks for long; orders are carried out in turn.
  virtual void Send(const Order& order) = 0;
  /// What is known by now is to be reported: a node of this process does it before this returns.
  virtual void Poll() = 0;
};

}  // namespace muster::agent

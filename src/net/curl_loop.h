#pragma once
// libcurl's multi interface inside of our event loop: sockets and its one timer. Internal to the
// client; loop thread only.

#include <functional>
#include <optional>
#include <unordered_map>

#include "os/event_loop.h"

namespace muster::net {

class CurlLoop {
 public:
  /// A transfer has ended with a CURLcode, and is out of the loop already.
  using OnDone = std::function<void(void* easy, int code)>;
  /// libcurl has done what it could for now: what it brought may be handed on.
  using OnTurn = std::function<void()>;

  CurlLoop(os::EventLoop& loop, unsigned idle_connections, OnDone on_done, OnTurn on_turn);
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;
  ~CurlLoop();

  Status Add(void* easy);
  void Remove(void* easy);

 private:
  static int OnSocket(void* easy, int fd, int what, void* self, void*);
  static int OnTimer(void* multi, long milliseconds, void* self);
  void Act(int fd, int events);
  void SetWatch(int fd, std::uint32_t events);

  os::EventLoop& loop_;
  OnDone on_done_;
  OnTurn on_turn_;
  void* multi_;
  std::unordered_map<int, os::WatchId> watches_;
  std::optional<os::TimerId> timer_;
};

}  // namespace muster::net

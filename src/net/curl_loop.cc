#include "net/curl_loop.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>

#include "base/fd.h"

namespace muster::net {
namespace {

int EventsOf(std::uint32_t ready) {
  int events = 0;
  if ((ready & (EPOLLIN | EPOLLRDHUP)) != 0) events |= CURL_CSELECT_IN;
  if ((ready & EPOLLOUT) != 0) events |= CURL_CSELECT_OUT;
  if ((ready & (EPOLLERR | EPOLLHUP)) != 0) events |= CURL_CSELECT_ERR;
  return events;
}

bool InitialiseOnce() {
  static const bool done = ::curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return done;
}

/// libcurl opens a pair of sockets to wake a multi handle, which an executed program would inherit
/// and which it names to nobody. They get the two lowest free numbers.
CURLM* OpenMulti() {
  std::array<int, 2> lowest{};
  {
    const Fd first(::epoll_create1(EPOLL_CLOEXEC));
    const Fd second(::epoll_create1(EPOLL_CLOEXEC));
    lowest = {first.get(), second.get()};
  }
  CURLM* const multi = ::curl_multi_init();
  for (const int fd : lowest) {
    int domain = 0;
    socklen_t size = sizeof(domain);
    if (fd < 0 || ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0) continue;
    if (domain == AF_UNIX) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  return multi;
}

}  // namespace

CurlLoop::CurlLoop(os::EventLoop& loop, unsigned idle_connections, OnDone on_done, OnTurn on_turn)
    : loop_(loop), on_done_(std::move(on_done)), on_turn_(std::move(on_turn)) {
  MUSTER_CHECK(InitialiseOnce());
  multi_ = OpenMulti();
  MUSTER_CHECK(multi_ != nullptr);
  ::curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlLoop::OnSocket);
  ::curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  ::curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlLoop::OnTimer);
  ::curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  ::curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(idle_connections));
  ::curl_multi_setopt(multi_, CURLMOPT_PIPELINING, long{CURLPIPE_NOTHING});
}

CurlLoop::~CurlLoop() {
  ::curl_multi_cleanup(multi_);
  for (const auto& [fd, watch] : watches_) loop_.Remove(watch);
  if (timer_) loop_.Remove(*timer_);
}

Status CurlLoop::Add(void* easy) {
  const CURLMcode code = ::curl_multi_add_handle(multi_, easy);
  if (code == CURLM_OK) return Ok();
  return Error(Code::kExhausted, std::string("start a request: ") + ::curl_multi_strerror(code));
}

void CurlLoop::Remove(void* easy) { ::curl_multi_remove_handle(multi_, easy); }

int CurlLoop::OnSocket(void*, int fd, int what, void* self, void*) {
  std::uint32_t events = 0;
  if ((what & CURL_POLL_IN) != 0 && what != CURL_POLL_REMOVE) events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0 && what != CURL_POLL_REMOVE) events |= EPOLLOUT;
  static_cast<CurlLoop*>(self)->SetWatch(fd, events);
  return 0;
}

void CurlLoop::SetWatch(int fd, std::uint32_t events) {
  const auto known = watches_.find(fd);
  if (events == 0) {
    if (known == watches_.end()) return;
    loop_.Remove(known->second);
    watches_.erase(known);
    return;
  }
  if (known != watches_.end()) {
    if (loop_.Change(known->second, events)) return;
    // The descriptor was closed and its number is in use again.
    loop_.Remove(known->second);
    watches_.erase(known);
  }
  auto watch =
      loop_.Watch(fd, events, [this, fd](std::uint32_t ready) { Act(fd, EventsOf(ready)); });
  // Where the kernel cannot watch any more, the request ends by its timeout.
  if (watch) watches_.emplace(fd, *watch);
}

int CurlLoop::OnTimer(void*, long milliseconds, void* self) {
  auto* const loop = static_cast<CurlLoop*>(self);
  if (loop->timer_) loop->loop_.Remove(*std::exchange(loop->timer_, std::nullopt));
  if (milliseconds < 0) return 0;
  loop->timer_ = loop->loop_.After(std::chrono::milliseconds(milliseconds), [loop] {
    loop->timer_.reset();
    loop->Act(CURL_SOCKET_TIMEOUT, 0);
  });
  return 0;
}

void CurlLoop::Act(int fd, int events) {
  int running = 0;
  ::curl_multi_socket_action(multi_, fd, events, &running);
  int left = 0;
  while (const CURLMsg* message = ::curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    void* const easy = message->easy_handle;
    const int code = message->data.result;
    ::curl_multi_remove_handle(multi_, easy);
    on_done_(easy, code);
  }
  on_turn_();
}

}  // namespace muster::net

#pragma once
// One connection of the server: reads a request within its limits, lets its route answer, and
// carries an event stream. It has one deadline: for a whole request, then for the answer to be
// taken. Internal to the server; loop thread only, called by libmicrohttpd's callbacks.

#include <cstddef>
#include <memory>
#include <optional>

#include "net/server_core.h"

struct MHD_Response;

namespace muster::net {

class ServerConnection final : public StreamCarrier {
 public:
  /// What libmicrohttpd is to do next.
  enum class Next { kGoOn, kClose };

  ServerConnection(ServerCore& core, MHD_Connection* connection, int fd);
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;
  ~ServerConnection() override;

  /// The head of a request has come.
  Next Begin(const char* method, const char* path);
  /// Some of its body.
  Next TakeBody(const char* data, std::size_t size);
  /// All of it.
  Next Finish();
  /// The exchange is over; the connection may bring another one.
  void Complete(bool server_stops);
  bool in_exchange() const { return exchange_ != nullptr; }

  /// Gives libmicrohttpd the next bytes of the stream: how many, or one of its end marks.
  std::ptrdiff_t ReadStream(char* out, std::size_t most);
  void Heartbeat(const SharedFrame& comment);
  /// Before the daemon stops: no connection may stay suspended.
  void Release();

  void Wake() override;
  void Cut() override;

 private:
  struct Exchange {
    Request request;
    const ServerRoute* route = nullptr;
    std::optional<Response> refusal;
    std::size_t received = 0;
    bool answered = false;
    std::shared_ptr<StreamState> stream;
  };

  void ReadHead(const char* path);
  std::optional<Response> Refuse();
  Status CheckToken() const;
  Next Answer(const Response& response);
  Next StartStream();
  Next Queue(int status, MHD_Response* response, const std::vector<Header>& headers);
  void SetDeadline();
  void DropDeadline();
  void Suspend();
  void WatchPeer();
  void PeerGone();

  ServerCore& core_;
  MHD_Connection* connection_;
  int fd_;
  std::unique_ptr<Exchange> exchange_;
  std::optional<os::TimerId> deadline_;
  std::optional<os::WatchId> peer_watch_;
  bool suspended_ = false;
};

}  // namespace muster::net

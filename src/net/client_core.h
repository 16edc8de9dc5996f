#pragma once
// The calls of one client: attempts, waits between them, streams. Internal to the client
// (http_client.h has the contract); loop thread only.

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "net/client_transfer.h"
#include "net/curl_loop.h"
#include "net/http_client.h"

namespace muster::net {

class ClientCore {
 public:
  ClientCore(os::EventLoop& loop, ClientOptions options);
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;
  ~ClientCore();

  CallId Send(ClientRequest request, HttpClient::Done done);
  CallId Listen(StreamRequest request, StreamListener listener);
  void Cancel(CallId call);

 private:
  struct Call {
    std::unique_ptr<ClientTransfer> transfer;
    std::optional<os::TimerId> timer;  ///< before the next attempt, or of a stream's silence
    std::optional<int> code;           ///< the transfer has ended
    std::optional<Error> failed;       ///< before or beside any transfer
    bool listed = false;               ///< in touched_
    // Of a request:
    ClientRequest request;
    HttpClient::Done done;
    unsigned attempt = 0;
    Instant started;
    // Of a stream:
    std::optional<StreamRequest> stream;
    StreamListener listener;
    SseParser parser;
    bool opened = false;
    Instant heard;
  };

  CallId Start(std::unique_ptr<Call> call);
  Result<std::string> CheckTarget(const std::string& url) const;
  void Begin(std::uint64_t id);
  TransferPlan PlanOf(const Call& call) const;
  void Touch(std::uint64_t id);
  void DoneWith(void* easy, int code);
  void DeliverAll();
  // These call back, and return false when that destroyed the client.
  bool Deliver(std::uint64_t id);
  bool DeliverRequest(std::uint64_t id, Call& call);
  bool DeliverStream(std::uint64_t id, Call& call);
  bool OpenStream(std::uint64_t id, Call& call);
  bool DeliverEvents(std::uint64_t id, const std::vector<Event>& events);
  bool EndStream(std::uint64_t id, Error&& why);
  Call* Find(std::uint64_t id);
  bool TryAgain(std::uint64_t id, Call& call, const Result<Response>& outcome);
  void WatchSilence(std::uint64_t id);
  void Stop(Call& call);
  void DeliverSoon();

  os::EventLoop& loop_;
  ClientOptions options_;
  std::optional<TlsPin> pin_;
  Rng random_;
  CurlLoop curl_;
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, std::unique_ptr<Call>> calls_;
  std::unordered_map<void*, std::uint64_t> by_easy_;
  std::vector<std::uint64_t> touched_;
  std::optional<os::TimerId> soon_;
  /// Gone with this object; who calls back looks whether it is.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::net

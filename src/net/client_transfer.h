#pragma once
// One attempt of a request: an easy handle of libcurl, what it is told and what it brings. Nothing
// is handed on from inside of libcurl's callbacks: they only gather. Internal to the client.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/http_client.h"
#include "net/tls_pin.h"

struct curl_slist;
struct curl_sockaddr;

namespace muster::net {

/// What a transfer is made of.
struct TransferPlan {
  Method method = Method::kGet;
  std::string url;
  std::vector<Header> headers;
  const std::string* body = nullptr;     ///< the caller's, or none
  std::chrono::milliseconds timeout{0};  ///< of the whole; 0 for none
  std::chrono::milliseconds connect_timeout{0};
  std::chrono::seconds idle_connection{20};
  std::size_t max_response = 0;
  bool events = false;  ///< a body of status 200 that is an event stream is a stream, not an answer
};

class ClientTransfer {
 public:
  /// `touched` is called when there is something to look at.
  ClientTransfer(const TransferPlan& plan, TlsPin* pin, std::function<void()> touched);
  ClientTransfer(const ClientTransfer&) = delete;
  ClientTransfer& operator=(const ClientTransfer&) = delete;
  ~ClientTransfer();

  void* easy() const { return easy_; }
  /// The whole head of an answer has come, and it is an event stream.
  bool streaming() const { return streaming_; }
  /// What came of the stream since the last call.
  std::string TakeBytes() { return std::exchange(stream_bytes_, {}); }

  /// After the end: the answer, or why there is none.
  Result<Response> Outcome(int code);
  /// Whether some of the request may have reached the server.
  bool Sent() const;

 private:
  static std::size_t OnHeader(char* data, std::size_t one, std::size_t size, void* self);
  static std::size_t OnBody(char* data, std::size_t one, std::size_t size, void* self);
  static int OnContext(void* easy, void* context, void* pin);
  static int OnOpenSocket(void* self, int purpose, curl_sockaddr* address);
  bool TakeHeaderLine(std::string_view line);
  bool TakeBody(std::string_view data);
  void SetHeaders(const TransferPlan& plan);
  void SetBody(const TransferPlan& plan);
  void SetTls();
  Error Failure(int code) const;

  std::string url_;  ///< for errors
  Method method_;
  TlsPin* pin_;
  std::function<void()> touched_;
  std::size_t max_response_;
  bool events_;
  void* easy_;
  curl_slist* list_ = nullptr;
  std::unique_ptr<char[]> why_;
  Response response_;
  std::size_t head_bytes_ = 0;
  std::string stream_bytes_;
  bool streaming_ = false;
  bool too_large_ = false;
};

}  // namespace muster::net

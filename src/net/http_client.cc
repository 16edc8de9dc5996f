#include "net/http_client.h"

#include <utility>

#include "net/client_core.h"

namespace muster::net {

Result<std::unique_ptr<HttpClient>> HttpClient::Create(os::EventLoop& loop, ClientOptions options) {
  return std::unique_ptr<HttpClient>(
      new HttpClient(std::make_unique<ClientCore>(loop, std::move(options))));
}

HttpClient::HttpClient(std::unique_ptr<ClientCore> core) : core_(std::move(core)) {}
HttpClient::~HttpClient() = default;

CallId HttpClient::Send(ClientRequest request, Done done) {
  return core_->Send(std::move(request), std::move(done));
}
CallId HttpClient::Listen(StreamRequest request, StreamListener listener) {
  return core_->Listen(std::move(request), std::move(listener));
}
void HttpClient::Cancel(CallId call) { core_->Cancel(call); }

}  // namespace muster::net

#include "net/http_server.h"

#include <utility>

#include "net/server_connection.h"
#include "net/server_core.h"

namespace muster::net {

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(os::EventLoop& loop, ServerOptions options) {
  auto core = std::make_unique<ServerCore>(loop, std::move(options));
  MUSTER_TRY(core->Start());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));
}

HttpServer::HttpServer(std::unique_ptr<ServerCore> core) : core_(std::move(core)) {}
HttpServer::~HttpServer() = default;

void HttpServer::Handle(Method method, std::string_view pattern, Handler handler, Access access) {
  core_->Add(method, pattern, {.handler = std::move(handler), .access = access});
}

void HttpServer::HandleEvents(std::string_view pattern, StreamHandler handler, Access access) {
  core_->Add(Method::kGet, pattern, {.streams = std::move(handler), .access = access});
}

const Address& HttpServer::address() const { return core_->address(); }
const ServerCounters& HttpServer::counters() const { return core_->counters(); }

}  // namespace muster::net
